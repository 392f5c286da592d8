// fold.js - a plane as nested blocks, each of which can be folded to one box.
"use strict";

// On a phone the drawing is higher than wide.
const isNarrow = () => innerWidth < 700;
const SHOWN_AT_FIRST = 170, SHOWN_NARROW = 45, CHUNK_FROM = 120;

// kind "block": its own switches and hosts, and inner blocks; "switch" and "host": index in the plane.
class Item {
  constructor(kind, name, index = -1) {
    Object.assign(this, { kind, name, index, parent: null, switches: [], hosts: [], blocks: [], open: false, layout: "rows", at: null });
  }

  add(list, item) {
    item.parent = this;
    this[list].push(item);
  }

  get shown() {
    return [...this.switches, ...this.blocks, ...this.hosts];
  }

  // Call for every switch and host in the item, in this order.
  each(call) {
    if (this.kind !== "block")
      call(this);
    for (const item of this.shown)
      item.each(call);
  }
}

class Components {
  constructor(n) {
    this.up = Int32Array.from({ length: n }, (_, i) => i);
  }

  find(i) {
    while (this.up[i] !== i)
      i = this.up[i] = this.up[this.up[i]];
    return i;
  }

  join(a, b) {
    this.up[this.find(a)] = this.find(b);
  }
}

class Fold {
  constructor(plane) {
    this.plane = plane;
    this.root = new Item("block", plane.name);
    this.items = { switch: new Array(plane.nSwitches), host: new Array(plane.nHosts) };
    const switches = range(0, plane.nSwitches), hosts = range(0, plane.nHosts);
    const grid = /^(mesh|torus)-([23])d$/.exec(plane.kind);
    if (grid)
      this.#grid(+grid[2], switches, hosts);
    else if (plane.kind === "dragonfly")
      this.#groups(switches, hosts);
    else
      this.#levels(this.root, switches, hosts);
    this.#sort(this.root);
    this.#chunks(this.root);
    this.count(this.root);
    this.#openFirst();
  }

  #leaf(kind, index) {
    const item = this.items[kind][index] = new Item(kind, this.plane[kind === "switch" ? "switches" : "hosts"].name[index], index);
    const all = kind === "host" ? this.plane.hostDevices[index].length : 0, bad = all > 0 ? this.plane.hostBad[index] : 0;
    return Object.assign(item, { feet: all, label: bad > 0 && bad < all ? `${item.name} ${all - bad}/${all}` : item.name });
  }

  #fill(block, switches, hosts) {
    for (const s of switches)
      block.add("switches", this.#leaf("switch", s));
    for (const h of hosts)
      block.add("hosts", this.#leaf("host", h));
  }

  // Return the only switch of a host, -1: it has several, or none.
  #only(host) {
    const on = new Set(this.plane.hostDevices[host].map(d => this.plane.on[d]));
    return on.size === 1 ? [...on][0] : -1;
  }

  // Make one block for each switch, with the hosts that have no other switch; the rest belongs to `around`.
  #singles(around, switches, hosts) {
    const own = new Map(switches.map(s => [s, []])), rest = [];
    for (const h of hosts)
      (own.get(this.#only(h)) ?? rest).push(h);
    for (const [s, mine] of own) {
      const block = new Item("block", this.plane.switches.name[s]);
      block.at = this.plane.switches.at[s];
      this.#fill(block, [s], mine);
      around.add("blocks", block);
    }
    this.#fill(around, [], rest);
  }

  // Fold a tree: the highest switches, and below them the parts that stay connected without them.
  #levels(block, switches, hosts) {
    const level = this.plane.switches.level, top = Math.max(0, ...switches.map(s => level[s]));
    if (top === 0 && (switches.length <= 1 || hosts.some(h => this.#only(h) < 0)))
      return this.#fill(block, switches, hosts);
    if (top === 0) {
      block.layout = switches.length <= 40 ? "ring" : "rows";
      return this.#singles(block, switches, hosts);
    }
    this.#fill(block, switches.filter(s => level[s] === top), []);
    for (const part of this.#parts(switches.filter(s => level[s] < top), hosts)) {
      if (part.switches.length === 0) {
        this.#fill(block, [], part.hosts);
        continue;
      }
      const below = new Item("block", this.#partName(part.switches));
      this.#levels(below, part.switches, part.hosts);
      block.add("blocks", below);
    }
  }

  #parts(switches, hosts) {
    const { nSwitches, switchLinks, hostLinks, links, hostOf } = this.plane;
    const node = end => end >= 0 ? end : nSwitches + hostOf[-1 - end];
    const inside = new Set([...switches, ...hosts.map(h => nSwitches + h)]), all = new Components(nSwitches + this.plane.nHosts);
    for (const list of [...switches.map(s => switchLinks[s]), ...hosts.map(h => hostLinks[h])])
      for (const i of list)
        if (links.a[i] !== null && links.b[i] !== null && inside.has(node(links.a[i])) && inside.has(node(links.b[i])))
          all.join(node(links.a[i]), node(links.b[i]));
    const parts = new Map();
    for (const n of inside) {
      const root = all.find(n);
      if (!parts.has(root))
        parts.set(root, { switches: [], hosts: [] });
      parts.get(root)[n < nSwitches ? "switches" : "hosts"].push(n < nSwitches ? n : n - nSwitches);
    }
    return [...parts.values()].sort((a, b) => this.#rank(a) - this.#rank(b));
  }

  #rank(part) {
    return part.hosts[0] ?? Infinity;
  }

  #partName(switches) {
    const { name, unit } = this.plane.switches, at = this.plane.switches.at[switches.find(s => this.plane.switches.at[s])];
    if (switches.length === 1)
      return name[switches[0]];
    if (switches.some(s => unit[s] !== null && unit[s] === unit[switches[0]]) && new Set(switches.map(s => unit[s])).size === 1)
      return `unit${unit[switches[0]]}`;
    return this.plane.kind === "fat-tree-3" && at ? `pod${at[0]}` : `${name[switches[0]]} …`;
  }

  // Fold a dragonfly: groups in a ring, and in each group its routers. A router without devices joins the group of
  // most of its neighbours.
  #groups(switches, hosts) {
    const { switchLinks, links, switches: { at } } = this.plane, groups = new Map();
    const groupOf = s => at[s]?.[0] ?? this.#majority(switchLinks[s].map(i => links.a[i] === s ? links.b[i] : links.a[i]));
    for (const s of switches) {
      const group = groupOf(s);
      if (!groups.has(group))
        groups.set(group, { switches: [], hosts: [] });
      groups.get(group).switches.push(s);
    }
    const where = new Map([...groups].flatMap(([group, { switches: its }]) => its.map(s => [s, group])));
    const rest = hosts.filter(h => !where.has(this.#only(h)) || !groups.get(where.get(this.#only(h))).hosts.push(h));
    this.root.layout = "ring";
    for (const [group, part] of [...groups].sort((a, b) => a[0] - b[0])) {
      const block = new Item("block", `group${group}`);
      block.layout = part.switches.length <= 40 ? "ring" : "rows";
      this.#singles(block, part.switches, part.hosts);
      this.root.add("blocks", block);
    }
    this.#fill(this.root, [], rest);
  }

  #majority(neighbours) {
    const votes = new Map();
    for (const s of neighbours) {
      const group = s !== null && s >= 0 ? this.plane.switches.at[s]?.[0] : undefined;
      if (group !== undefined)
        votes.set(group, (votes.get(group) ?? 0) + 1);
    }
    return [...votes].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
  }

  // Fold a mesh or torus: each switch at its coordinates; of three dimensions, one slice beside the other.
  #grid(dims, switches, hosts) {
    const { at } = this.plane.switches;
    if (dims === 2) {
      this.#singles(this.root, switches, hosts);
      this.root.layout = "grid";
      return;
    }
    const slices = new Map(), rest = [];
    for (const s of switches)
      slices.set(at[s]?.[2] ?? -1, [...slices.get(at[s]?.[2] ?? -1) ?? [], s]);
    const mine = new Map([...slices.keys()].map(z => [z, []]));
    for (const h of hosts)
      (mine.get(at[this.#only(h)]?.[2]) ?? rest).push(h);
    for (const [z, part] of [...slices].sort((a, b) => a[0] - b[0])) {
      const block = new Item("block", z < 0 ? "without coordinates" : `slice ${z}`);
      block.layout = "grid";
      this.#singles(block, part, mine.get(z));
      this.root.add("blocks", block);
    }
    this.#fill(this.root, [], rest);
  }

  // Hosts are sorted already.
  #sort(block) {
    block.switches.sort((a, b) => naturally(a.name, b.name));
    block.blocks.sort((a, b) => naturally(a.name, b.name)).forEach(below => this.#sort(below));
  }

  // Split long lists into lists of lists: five hundred boxes are unreadable, and ten thousand are slow.
  #chunks(block) {
    for (const below of block.blocks)
      this.#chunks(below);
    if (block.layout !== "grid" || block.blocks.length > 900)
      this.#chunk(block, "blocks", block.blocks.length > 900 ? "rows" : block.layout);
    this.#chunk(block, "switches", block.layout);
    this.#chunk(block, "hosts", block.layout);
  }

  #chunk(block, list, layout) {
    const all = block[list], step = Math.ceil(Math.sqrt(all.length));
    if (all.length <= CHUNK_FROM)
      return;
    block.layout = layout;
    block[list] = [];
    const whole = list === "switches"; // of one kind and one place: one box is enough
    for (let i = 0; i < all.length; i += whole ? all.length : step) {
      const part = all.slice(i, whole ? all.length : i + step);
      const chunk = new Item("block", whole ? `level ${this.plane.switches.level[part[0].index]}` : `${part[0].name} …`);
      for (const item of part)
        chunk.add(list, item);
      block.add(whole ? "switches" : "blocks", chunk);
    }
  }

  // Count the contents of each block, and its faulty members.
  count(block) {
    block.n = { switches: 0, hosts: 0, down: 0, partly: 0 };
    block.each(item => {
      block.n[item.kind === "switch" ? "switches" : "hosts"]++;
      const down = item.kind === "switch" ? this.plane.switches.missing[item.index] === 1 : this.plane.hostDown(item.index);
      block.n.down += down;
      block.n.partly += !down && item.kind === "host" && this.plane.hostBad[item.index] > 0;
    });
    for (const item of block.shown)
      if (item.kind === "block")
        this.count(item);
  }

  // Unfold floor by floor, as long as the drawing stays clear.
  #openFirst() {
    let floor = [this.root], shown = 0;
    while (floor.length > 0) {
      const next = floor.flatMap(block => block.shown);
      if (floor[0] !== this.root && shown + next.length > (isNarrow() ? SHOWN_NARROW : SHOWN_AT_FIRST))
        return;
      for (const block of floor)
        block.open = true;
      shown += next.length;
      floor = next.filter(item => item.kind === "block");
    }
  }

  reset() {
    const close = block => {
      block.open = false;
      block.shown.filter(item => item.kind === "block").forEach(close);
    };
    close(this.root);
    this.root.open = true;
  }

  // Unfold the blocks around an item.
  reveal(item) {
    for (let block = item.parent; block !== null; block = block.parent)
      block.open = true;
  }

  // Return whether a switch or host is in a block.
  holds(block, kind, index) {
    let item = this.items[kind][index];
    while (item !== null && item !== block)
      item = item.parent;
    return item === block;
  }

  // Return the visible box of each switch and host.
  representatives() {
    const seen = { switch: new Array(this.plane.nSwitches), host: new Array(this.plane.nHosts) };
    const walk = block => {
      for (const item of block.shown)
        if (item.kind === "block" && item.open)
          walk(item);
        else
          item.each(inner => { seen[inner.kind][inner.index] = item; });
    };
    walk(this.root);
    return seen;
  }
}
