// lost.js - lost objects stay in the drawing: switches, hosts, devices and cables that the plane does not have any
// more.
"use strict";

// A plane's columns, with lost objects after the present ones; and the number of present ones.
class Lost {
  constructor(raw, cables) {
    const copy = columns => Object.fromEntries(Object.entries(columns).map(([name, list]) => [name, [...list]]));
    for (const part of ["switches", "hosts", "devices", "links"])
      this[part] = copy(raw[part]);
    this.live = { switches: raw.switches.name.length, hosts: raw.hosts.name.length, devices: raw.devices.name.length, links: raw.links.a.length };
    this.lostHost = []; // for each lost device its host
    this.away = new Set(); // switches at lost cables that are not lost: they are in another plane
    this.switchAt = new Map(raw.switches.guid.map((guid, i) => [BigInt(`0x${guid}`), i]));
    this.deviceAt = new Map(cables.length === 0 ? [] : raw.devices.node.map((node, i) => [Lost.#deviceKey(Plane.nodeGuid(raw.devices, i, node), raw.devices.port[i]), i]));
    this.hostAt = new Map(raw.hosts.name.map((name, i) => [name, i]));
    this.#addCables(cables);
    this.#levels();
  }

  static #deviceKey(guid, port) {
    return `${guid} ${port}`;
  }

  // Add lost cables from the present objects outwards.
  #addCables(cables) {
    for (let rest = cables, n = -1; rest.length !== n;) {
      n = rest.length;
      rest = rest.filter(cable => {
        const known = cable.ends.map(end => this.#known(end));
        if (known.every(end => end === undefined))
          return true;
        const [a, b] = known.map((end, i) => end ?? this.#add(cable.ends[i]));
        this.#push("links", { a, a_port: cable.ends[0].port, b, b_port: cable.ends[1].port, mbps: cable.mbps, missing: 1 });
        return false;
      });
    }
  }

  #known({ switch: isSwitch, guid, port }) {
    const at = isSwitch ? this.switchAt.get(BigInt(guid)) : this.deviceAt.get(Lost.#deviceKey(BigInt(guid), port));
    return at === undefined || isSwitch ? at : -1 - at;
  }

  #push(part, row) {
    for (const [name, list] of Object.entries(this[part]))
      if (name !== "names")
        list.push(row[name] ?? null);
  }

  #add(end) {
    const { switches, devices } = this, guid = end.guid.replace(/^0x0*/, "");
    if (end.switch) {
      this.switchAt.set(BigInt(end.guid), switches.name.length);
      if (!end.lost)
        this.away.add(switches.name.length);
      this.#push("switches", { name: end.name, guid, missing: 1 });
      return switches.name.length - 1;
    }
    this.deviceAt.set(Lost.#deviceKey(BigInt(end.guid), end.port), devices.name.length);
    if (!devices.names.includes(end.name))
      devices.names.push(end.name);
    this.lostHost.push(this.#hostOf(end.host || end.name));
    this.#push("devices", { name: devices.names.indexOf(end.name), port: end.port, guid, node: guid, state: STATE_DOWN, seen: SEEN_MISSING });
    return -devices.name.length;
  }

  #hostOf(name) {
    if (!this.hostAt.has(name)) {
      this.hostAt.set(name, this.hosts.name.length);
      this.#push("hosts", { name, devices: 0 });
    }
    return this.hostAt.get(name);
  }

  // Set levels: a lost switch has the level of the switch that shares most of its neighbours; without one, it is one
  // above its lowest neighbour.
  #levels() {
    const { switches: { level }, links: { a, b }, live } = this, near = new Map();
    const join = (from, to) => near.set(from, [...near.get(from) ?? [], to]);
    if (level.length === live.switches)
      return;
    a.forEach((from, i) => {
      if (from !== null && b[i] !== null && (from >= 0 || b[i] >= 0)) {
        join(from, b[i]);
        join(b[i], from);
      }
    });
    for (let s = live.switches; s < level.length; s++) {
      const mine = near.get(s), votes = new Map();
      for (const other of mine.filter(end => end >= 0).flatMap(end => near.get(end)))
        if (other >= 0 && other < live.switches)
          votes.set(other, (votes.get(other) ?? 0) + 1);
      const [alike] = [...votes].sort((one, two) => two[1] - one[1])[0] ?? [];
      level[s] = mine.some(end => end < 0) ? 0 : alike !== undefined ? level[alike] : 1 + Math.min(...mine.map(end => level[end] ?? 0));
    }
  }
}
