// SPDX-License-Identifier: Apache-2.0

// What the programs of this folder share: the order on standard input, its events, and the numbers of those acked.
'use strict';

const fs = require('node:fs');
const {createRequire} = require('node:module');

const order = JSON.parse(fs.readFileSync(0, 'utf8'));
exports.order = order;

// installed(name) is a module of the folder that the program's argument names.
exports.installed = createRequire(process.argv[2]);

// record is what event n says.
exports.record = n => ({
  n,
  text: `zwölf "${n}"\n\t€ 日本語 🚀`,
  half: n + 0.5,
  list: [null, true, false, {deep: -n}, []],
  map: {'': {}, 'é': {inner: 'x'}},
  none: null,
  long: 'x'.repeat(n % 300),
  big: Number.MAX_SAFE_INTEGER - n,
  low: n - Number.MAX_SAFE_INTEGER,
});

exports.label = n => `t${n % 3}`;

// when is the time of event n: a Date, or an EventTime of the client's where a Date has not the precision.
exports.when = (n, EventTime) => {
  const seconds = 1700000000 + Math.floor(n / 8);
  switch (order.times) {
    case 'seconds':
      return new Date(seconds * 1000);
    case 'milliseconds':
      return new Date(seconds * 1000 + n % 1000);
    default:
      return new EventTime(seconds, (n * 7919 + 1) % 1e9);
  }
};

// mode is the client's word for the order's mode.
exports.mode = {message: 'Message', forward: 'Forward', packed: 'PackedForward', compressed: 'CompressedPackedForward'}[order.mode];

// tls are the options of package tls.
exports.tls = order.ca && {
  ca: fs.readFileSync(order.ca),
  cert: order.cert && fs.readFileSync(order.cert),
  key: order.cert && fs.readFileSync(order.key),
};

// security are both clients' options for the handshake.
exports.security = order.shared_key && {
  clientHostname: order.hostname,
  sharedKey: order.shared_key,
  username: order.username,
  password: order.password,
};

// sendAll calls emit for each event, a batch at a time, waits until what it returned is so, and tells of acks.
exports.sendAll = async emit => {
  for (let first = 0; first < order.count; first += order.batch) {
    const batch = [];
    for (let n = first; n < Math.min(first + order.batch, order.count); n++) {
      batch.push(emit(n).then(() => order.ack && process.stdout.write(`${n}\n`)));
    }
    await Promise.all(batch);
  }
};

// main runs the program and ends it.
exports.main = run => run().then(
  () => process.exit(0),
  error => {
    console.error(error);
    process.exit(1);
  },
);
