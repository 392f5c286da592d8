// data.js - a plane of the report, and the queries of the page.
"use strict";

const STATE_DOWN = 1, STATE_UP = 2, SEEN_MISSING = 4, NO_PATH = 65535, FIRST_CHARACTER = 0x5d;

const gbps = mbps => mbps ? `${mbps / 1000} Gb/s` : "rate unknown";
const counted = (n, what) => `${n} ${what}${n === 1 ? "" : what.endsWith("h") ? "es" : "s"}`;
const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
const naturally = new Intl.Collator("en", { numeric: true }).compare;

class Plane {
  // Present objects, followed by lost ones: `live` has the numbers of the present ones. Only these have costs.
  constructor(raw, lostCables) {
    Object.assign(this, raw, new Lost(raw, lostCables));
    this.nSwitches = this.switches.name.length;
    this.nHosts = this.hosts.name.length;
    this.nDevices = this.devices.name.length;
    this.nLinks = this.links.a.length;
    this.firstDevice = new Int32Array(this.nHosts + 1);
    this.hostOf = new Int32Array(this.nDevices);
    for (let host = 0; host < this.nHosts; host++) {
      this.firstDevice[host + 1] = this.firstDevice[host] + this.hosts.devices[host];
      this.hostOf.fill(host, this.firstDevice[host], this.firstDevice[host + 1]);
    }
    this.hostOf.set(this.lostHost, this.live.devices);
    this.rates = [...new Set(this.links.mbps)].sort((a, b) => b - a);
    this.#wire();
  }

  // Decode the costs on demand: only the displayed plane needs them.
  get costMatrix() {
    if (this.matrix === undefined)
      this.matrix = this.costs.rows ? decodeCosts(this.costs) : null;
    return this.matrix;
  }

  static nodeGuid({ guid }, device, node) {
    return typeof node === "number" ? BigInt(`0x${guid[device]}`) - BigInt(node) : BigInt(`0x${node}`);
  }

  // Collect the links of each switch and host, the switch and port of each device, and their faults.
  #wire() {
    const { a, b, a_port: aPort, b_port: bPort, mbps, missing } = this.links;
    this.on = new Int32Array(this.nDevices).fill(-1); // -1: to no switch
    this.onPort = new Int32Array(this.nDevices);
    this.mbps = new Int32Array(this.nDevices);
    const cable = (device, other, port, rate) => {
      this.mbps[device] = rate;
      if (other !== null && other >= 0)
        [this.on[device], this.onPort[device]] = [other, port];
    };
    this.switchLinks = Array.from({ length: this.nSwitches }, () => []);
    this.hostLinks = Array.from({ length: this.nHosts }, () => []);
    for (let i = 0; i < this.nLinks; i++)
      for (const [end, other, port] of [[a[i], b[i], bPort[i]], [b[i], a[i], aPort[i]]]) {
        if (end === null)
          continue;
        (end >= 0 ? this.switchLinks[end] : this.hostLinks[this.hostOf[-1 - end]]).push(i);
        if (end < 0)
          cable(-1 - end, other, port, mbps[i]);
      }
    this.hostDevices = Array.from({ length: this.nHosts }, () => []);
    this.hostOf.forEach((host, d) => this.hostDevices[host].push(d));
    this.hostBad = this.hostDevices.map(list => list.filter(d => this.deviceBad(d)).length);
    this.linkBad = mbps.map((_, i) => missing[i] === 1 || this.#endDown(a[i]) || this.#endDown(b[i]));
    this.linkHealth = this.linkBad.map(bad => bad ? ERROR : WELL);
    this.nBad = [...this.linkBad, ...this.switches.missing].filter(Boolean).length + this.hostBad.reduce((sum, n) => sum + n, 0);
  }

  deviceBad(device) {
    return this.devices.state[device] !== STATE_UP || (this.devices.seen[device] & SEEN_MISSING) !== 0;
  }

  // Return the health of a device: the one of its cable.
  deviceHealth(device) {
    const { a, b } = this.links, mine = this.hostLinks[this.hostOf[device]].filter(i => a[i] === -1 - device || b[i] === -1 - device);
    return Math.max(WELL, ...mine.map(i => this.linkHealth[i]));
  }

  // Return whether all devices of the host are down.
  hostDown(host) {
    return this.hostBad[host] > 0 && this.hostBad[host] === this.hostDevices[host].length;
  }

  isLost(kind, index) {
    return index >= this.live[kind === "switch" ? "switches" : "hosts"] && !(kind === "switch" && this.away.has(index));
  }

  // Return the node with this GUID and the cable at its port, { kind, index, link }; undefined: not in this plane.
  findEnd(guid, port) {
    this.nodes ??= new Map([...this.devices.node.map((node, d) => [Plane.nodeGuid(this.devices, d, node), -1 - d]), ...this.switchAt]);
    const node = this.nodes.get(guid);
    if (node === undefined)
      return undefined;
    const links = node >= 0 ? this.switchLinks[node] : this.hostLinks[this.hostOf[-1 - node]], { a, a_port: aPort, b, b_port: bPort } = this.links;
    const at = (end, number) => number === port && end !== null && (node >= 0 ? end === node
      : end < 0 && Plane.nodeGuid(this.devices, -1 - end, this.devices.node[-1 - end]) === guid);
    return { ...node >= 0 ? { kind: "switch", index: node } : { kind: "host", index: this.hostOf[-1 - node] },
      link: port === null ? undefined : links.find(i => at(a[i], aPort[i]) || at(b[i], bPort[i])) };
  }

  named(name) {
    this.names ??= new Map([...this.switches.name.map((text, index) => [text, { kind: "switch", index }]), ...this.hosts.name.map((text, index) => [text, { kind: "host", index }])]);
    return this.names.get(name);
  }

  #endDown(end) {
    return end !== null && (end >= 0 ? this.switches.missing[end] === 1 : this.devices.state[-1 - end] !== STATE_UP);
  }

  // Return the other end of a link, as seen from a switch or host.
  otherEnd(link, isMine) {
    return isMine(this.links.a[link]) ? [this.links.a_port[link], this.links.b[link], this.links.b_port[link]]
      : [this.links.b_port[link], this.links.a[link], this.links.a_port[link]];
  }

  endName(end) {
    return end === null ? "router or aggregation node" : end >= 0 ? this.switches.name[end] : this.deviceName(-1 - end);
  }

  deviceName(device) {
    const { names, name, port } = this.devices;
    return `${this.hosts.name[this.hostOf[device]]}:${names[name[device]]}:${port[device]}`;
  }

  // Find a device by a name of fabricctl: host, host:device, host:device:port. Return -1 if there is none.
  findDevice(text) {
    const wanted = text.trim();
    const host = this.hosts.name.findIndex(name => wanted === name || wanted.startsWith(name + ":"));
    if (host < 0)
      return -1;
    for (let d = this.firstDevice[host]; d < this.firstDevice[host + 1]; d++)
      if (wanted === this.hosts.name[host] || (this.deviceName(d) + ":").startsWith(wanted + ":"))
        return d;
    return -1;
  }

  cost(a, b) {
    const host = this.hostOf[a], { costs } = this;
    if (a === b)
      return 0;
    if (host !== this.hostOf[b])
      return this.costMatrix[costs.class[a] * costs.classes + costs.class[b]];
    const n = this.hosts.devices[host], low = Math.min(a, b) - this.firstDevice[host], high = Math.max(a, b) - this.firstDevice[host];
    const digit = costs.inside_texts[costs.inside[host]][low * (2 * n - low - 1) / 2 + high - low - 1];
    return digit === "-" ? NO_PATH : +digit;
  }
}

// Decode the rows of the upper half, stored as runs: a character for a cost, and its count if it is more than one.
function decodeCosts({ classes, rows, values }) {
  const matrix = new Uint16Array(classes * classes);
  rows.forEach((row, a) => {
    let b = a;
    for (const [, character, times] of row.matchAll(/(\D)(\d*)/gu)) {
      const cost = values[character.codePointAt(0) - FIRST_CHARACTER] ?? NO_PATH;
      for (const end = b + (times === "" ? 1 : +times); b < end; b++)
        matrix[a * classes + b] = matrix[b * classes + a] = cost;
    }
  });
  return matrix;
}
