// SPDX-License-Identifier: Apache-2.0

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import org.fluentd.logger.FluentLogger;
import org.komamitsu.fluency.BufferFullException;
import org.komamitsu.fluency.EventTime;
import org.komamitsu.fluency.Fluency;
import org.komamitsu.fluency.fluentd.FluencyBuilderForFluentd;
import org.komamitsu.fluency.fluentd.ingester.sender.FluentdSender;
import org.komamitsu.fluency.ingester.Ingester;
import org.komamitsu.fluency.ingester.sender.Sender;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessageUnpacker;
import org.msgpack.value.ValueFactory;

/** Sends an order's events with the client that the argument names: fluency or fluent-logger. */
public class Send {
    private static JsonNode order;

    public static void main(String[] args) throws Exception {
        order = new ObjectMapper().readTree(System.in);
        if (args[0].equals("fluency")) {
            fluency();
        } else {
            fluentLogger();
        }
    }

    private static boolean has(String key) {
        return order.hasNonNull(key);
    }

    private static Map<String, Object> record(int n) {
        Map<String, Object> deep = new LinkedHashMap<>();
        deep.put("deep", -n);
        Map<String, Object> inner = new LinkedHashMap<>();
        inner.put("inner", "x");
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("", new LinkedHashMap<>());
        map.put("é", inner);
        Map<String, Object> r = new LinkedHashMap<>();
        r.put("n", n);
        r.put("text", "zwölf \"" + n + "\"\n\t€ 日本語 🚀");
        r.put("half", n + 0.5);
        r.put("list", Arrays.asList(null, true, false, deep, List.of()));
        r.put("map", map);
        r.put("none", null);
        r.put("long", "x".repeat(n % 300));
        r.put("big", (1L << 53) - 1 - n);
        r.put("low", n - ((1L << 53) - 1));
        if (order.get("huge").asBoolean()) {
            r.put("huge", Long.MAX_VALUE - n);
            r.put("least", Long.MIN_VALUE + n);
        }
        return r;
    }

    private static long seconds(int n) {
        return 1700000000L + n / 8;
    }

    private static void fluency() throws Exception {
        if (!order.get("mode").asText().equals("packed") || has("shared_key") || has("path")) {
            throw new IllegalArgumentException("the client has one mode, no handshake and no unix sockets");
        }
        int count = order.get("count").asInt();
        boolean leave = order.path("phase").asText().equals("leave");
        boolean resume = order.path("phase").asText().equals("resume");
        CountDownLatch sent = new CountDownLatch(count);

        // Fluency counts a chunk as flushed while it is still on its way, so what it did is asked of its lower half.
        FluencyBuilderForFluentd builder = new FluencyBuilderForFluentd() {
            @Override
            protected Ingester buildIngester(FluentdSender sender) {
                return new Telling(super.buildIngester(sender), sent);
            }
        };
        builder.setAckResponseMode(order.get("ack").asBoolean());
        builder.setSenderMaxRetryCount(order.get("retry").asBoolean() ? 10000 : 2);
        builder.setSenderBaseRetryIntervalMillis(20);
        builder.setSenderMaxRetryIntervalMillis(100);
        builder.setReadTimeoutMilli(order.get("retry").asBoolean() ? 2000 : 60000);
        builder.setFlushAttemptIntervalMillis(20);
        builder.setBufferChunkRetentionTimeMillis(100);
        builder.setBufferChunkInitialSize(64 << 10);
        builder.setBufferChunkRetentionSize(256 << 10);
        builder.setWaitUntilBufferFlushed(leave ? 1 : 60);
        builder.setWaitUntilFlusherTerminated(60);
        if (has("dir")) {
            builder.setFileBackupDir(order.get("dir").asText());
        }
        if (has("ca")) {
            builder.setSslEnabled(true);
            builder.setSslSocketFactory(socketFactory());
        }
        try (Fluency client = builder.build(order.get("host").asText(), order.get("port").asInt())) {
            for (int n = 0; n < count && !resume; n++) {
                for (;;) {
                    try {
                        if (order.get("times").asText().equals("seconds")) {
                            client.emit(order.get("tag").asText() + ".t" + n % 3, seconds(n), record(n));
                        } else {
                            EventTime when = EventTime.fromEpoch(seconds(n), (n * 7919L + 1) % 1000000000);
                            client.emit(order.get("tag").asText() + ".t" + n % 3, when, record(n));
                        }
                        break;
                    } catch (BufferFullException e) {
                        Thread.sleep(5);
                    }
                }
            }
            if (!leave) {
                client.flush();
                sent.await();
            }
        }
    }

    /** Telling is an ingester that tells of the events of a chunk when the chunk is sent and, with acks, acked. */
    private static class Telling implements Ingester {
        private final Ingester to;
        private final CountDownLatch sent;

        Telling(Ingester to, CountDownLatch sent) {
            this.to = to;
            this.sent = sent;
        }

        @Override
        public void ingest(String tag, ByteBuffer chunk) throws IOException {
            byte[] events = new byte[chunk.remaining()];
            chunk.duplicate().get(events);
            to.ingest(tag, chunk);
            StringBuilder numbers = new StringBuilder();
            int count = 0;
            try (MessageUnpacker in = MessagePack.newDefaultUnpacker(events)) {
                for (; in.hasNext(); count++) {
                    numbers.append(in.unpackValue().asArrayValue().get(1).asMapValue().map().get(ValueFactory.newString("n"))).append('\n');
                }
            }
            if (order.get("ack").asBoolean()) {
                System.out.print(numbers);
                System.out.flush();
            }
            for (; count > 0; count--) {
                sent.countDown();
            }
        }

        @Override
        public Sender getSender() {
            return to.getSender();
        }

        @Override
        public void close() throws IOException {
            to.close();
        }
    }

    private static SSLSocketFactory socketFactory() throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null);
        trusted.setCertificateEntry("ca", certificate(order.get("ca").asText()));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyManager[] keys = null;
        if (has("cert")) {
            String pem = Files.readString(Path.of(order.get("key").asText()));
            byte[] der = Base64.getMimeDecoder().decode(pem.replaceAll("-----[^-]*-----", ""));
            PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(der));
            KeyStore own = KeyStore.getInstance(KeyStore.getDefaultType());
            own.load(null);
            own.setKeyEntry("client", key, new char[0], new Certificate[] {certificate(order.get("cert").asText())});
            KeyManagerFactory managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            managers.init(own, new char[0]);
            keys = managers.getKeyManagers();
        }
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys, trust.getTrustManagers(), null);
        return context.getSocketFactory();
    }

    private static Certificate certificate(String file) throws Exception {
        try (InputStream in = new FileInputStream(file)) {
            return CertificateFactory.getInstance("X.509").generateCertificate(in);
        }
    }

    private static void fluentLogger() {
        if (order.get("ack").asBoolean() || !order.get("mode").asText().equals("message") || !order.get("times").asText().equals("seconds")
                || has("ca") || has("shared_key") || has("path")) {
            throw new IllegalArgumentException("the client has messages with times in seconds");
        }
        FluentLogger client = FluentLogger.getLogger(
                order.get("tag").asText(), order.get("host").asText(), order.get("port").asInt(), 60000, 1 << 20);
        for (int n = 0; n < order.get("count").asInt(); n++) {
            if (!client.log("t" + n % 3, record(n), seconds(n))) {
                throw new IllegalStateException("event " + n + " is refused");
            }
        }
        client.close();
    }
}
