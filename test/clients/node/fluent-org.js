// SPDX-License-Identifier: Apache-2.0

// Sends an order's events with @fluent-org/logger.
'use strict';

const {order, installed, record, label, when, mode, tls, security, sendAll, main} = require('./order.js');
const {FluentClient, EventTime} = installed('@fluent-org/logger');

main(async () => {
  if (!mode) throw new Error(`the client has no mode ${order.mode}`);
  const client = new FluentClient(order.tag, {
    eventMode: mode,
    socket: {
      host: order.host,
      port: order.port,
      path: order.path,
      timeout: 60000,
      tls,
      reconnect: {delay: 50, maxDelay: 200},
    },
    security,
    ack: order.ack ? {ackTimeout: order.retry ? 1000 : 60000} : undefined,
    milliseconds: order.times !== 'seconds',
    eventRetry: order.retry ? {attempts: Infinity, delay: 50, maxDelay: 200} : undefined,
    disableAutoconnect: true,
    disconnect: {waitForPending: true},
  });
  if (order.retry) {
    client.connect().catch(() => {});
  } else {
    client.socketOn('error', error => {
      console.error(error);
      process.exit(1);
    });
    await client.connect();
  }
  await sendAll(n => client.emit(label(n), record(n), when(n, EventTime)));
  await client.disconnect();
});
