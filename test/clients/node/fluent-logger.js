// SPDX-License-Identifier: Apache-2.0

// Sends an order's events with fluent-logger.
'use strict';

const {order, installed, record, label, when, mode, tls, security, sendAll, main} = require('./order.js');
const logger = installed('fluent-logger');

const quiet = {info() {}, error: order.retry ? () => {} : console.error};

function connect() {
  return logger.createFluentSender(order.tag, {
    host: order.host,
    port: order.port,
    path: order.path,
    timeout: 60,
    eventMode: mode,
    flushInterval: 1,
    requireAckResponse: order.ack,
    ackResponseTimeout: order.retry ? 1000 : 60000,
    reconnectInterval: 100,
    tls: !!tls,
    tlsOptions: tls,
    security,
    internalLogger: quiet,
  });
}

let sender = connect();
const waiting = new Map(); // the events handed over: how to tell that they failed

function once(n) {
  return new Promise((resolve, reject) => {
    waiting.set(n, reject);
    sender.emit(label(n), record(n), when(n, logger.EventTime), error => error ? reject(error) : resolve());
  }).finally(() => waiting.delete(n));
}

async function emit(n) {
  for (;;) {
    try {
      return await once(n);
    } catch (error) {
      if (!order.retry) throw error;
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  }
}

if (order.retry) {
  // When its connection breaks in the middle of a write the client throws where nobody can catch it.
  process.on('uncaughtException', error => {
    sender = connect();
    for (const reject of [...waiting.values()]) reject(error);
  });
} else {
  sender.on('error', error => {
    for (const reject of [...waiting.values()]) reject(error);
  });
}

main(async () => {
  if (!mode || mode === 'Forward') throw new Error(`the client has no mode ${order.mode}`);
  await sendAll(emit);
  // The client neither reads nor waits: with acks unread, ending now would reset the connection.
  const socket = sender._socket;
  const closed = new Promise(resolve => socket.once('close', resolve));
  sender.end();
  socket.resume();
  await closed;
});
