// heat.js - the costs of a plane as a heat map: between groups from afar, between devices from near.
"use strict";

const MARGIN = isNarrow() ? 90 : 130;
const RAMP = [[255, 245, 194], [166, 219, 160], [53, 167, 156], [42, 96, 153], [58, 26, 98]]; // red, green, blue, from near to far

class Heat {
  constructor() {
    this.canvas = document.getElementById("heat");
    if (isNarrow())
      this.canvas.width = this.canvas.height = Math.max(320, innerWidth - 20);
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.size = this.canvas.width - MARGIN;
    this.zoom = new Zoom(this.canvas, { least: 1, fingers: 1, within: this.#within.bind(this), moved: () => this.draw(),
      middle: () => [MARGIN + this.size / 2, MARGIN + this.size / 2], place: event => this.#place(event) });
    this.canvas.addEventListener("click", event => this.#click(event));
    this.canvas.addEventListener("keydown", event => this.#key(event));
    for (const media of ["(prefers-color-scheme: dark)", "print"])
      matchMedia(media).addEventListener("change", () => this.draw());
    for (const id of ["from", "to"])
      document.getElementById(id).addEventListener("change", () => this.#ask());
    document.getElementById("heat-out").addEventListener("click", () => this.out());
  }

  show(plane) {
    this.plane = plane;
    const why = plane.live.devices < 2 ? "There is only one device: nothing to compare." : plane.costMatrix === null
      ? `The devices have ${plane.costs.classes} different places, too many for a page: use fabricctl cost or fabricctl matrix.` : "";
    document.getElementById("costs-note").textContent = why;
    document.getElementById("costs-body").hidden = why !== "";
    document.getElementById("reading").value = "";
    this.order = null;
    if (why !== "")
      return;
    this.#arrange();
    this.#sameCost();
    this.#colours();
    this.cursor = [0, 0];
    this.zoom.most = Math.max(1, this.order.length * 24 / this.size);
    this.out();
  }

  // Order devices by groups and hosts. A host of two groups stands with the first.
  #arrange() {
    const { plane } = this, placed = new Uint8Array(plane.live.hosts), sections = [];
    const section = (name, hosts) => sections.push({ name, hosts: hosts.filter(h => !placed[h] && (placed[h] = 1)) });
    plane.groups.name.forEach((name, g) => section(name, plane.groups.hosts[g]));
    section("no group", range(0, plane.live.hosts));
    this.order = [];
    this.sections = sections.filter(({ hosts }) => hosts.length > 0);
    for (const part of this.sections) {
      part.first = this.order.length;
      for (const h of part.hosts)
        for (let d = plane.firstDevice[h]; d < plane.firstDevice[h + 1]; d++)
          this.order.push(d);
      part.n = this.order.length - part.first;
      part.classes = this.#classesOf(part);
      part.inside = this.#inside(part);
    }
    this.sectionAt = new Int32Array(this.order.length);
    this.sections.forEach((part, i) => this.sectionAt.fill(i, part.first, part.first + part.n));
    this.placeOf = new Int32Array(plane.live.devices);
    this.order.forEach((device, i) => { this.placeOf[device] = i; });
    this.means = this.#means();
  }

  // Replace a map of one colour by a sentence.
  #sameCost() {
    const costs = this.plane.costs.values.filter(cost => cost !== 0), one = costs.length === 1; // 0: unused
    for (const id of ["scale", "heat", "heat-out"])
      document.getElementById(id).hidden = one;
    if (one)
      document.getElementById("costs-note").textContent = costs[0] === null ? "No path joins any two hosts."
        : `The cost between any two hosts is ${costs[0]}.`;
  }

  #classesOf(part) {
    const times = new Map();
    for (let i = part.first; i < part.first + part.n; i++) {
      const k = this.plane.costs.class[this.order[i]];
      times.set(k, (times.get(k) ?? 0) + 1);
    }
    return [...times];
  }

  // Count for each two classes the pairs of their devices on one host.
  #inside({ hosts }) {
    const { costs, firstDevice } = this.plane, times = new Map();
    for (const h of hosts)
      for (let a = firstDevice[h]; a < firstDevice[h + 1]; a++)
        for (let b = firstDevice[h]; b < firstDevice[h + 1]; b++) {
          const pair = costs.class[a] * costs.classes + costs.class[b];
          times.set(pair, (times.get(pair) ?? 0) + 1);
        }
    return times;
  }

  // Return for a pair of groups the mean, the least and the largest cost between devices of two hosts; 0 without such
  // devices.
  pair(a, b) {
    const { costMatrix, costs } = this.plane;
    let sum = 0, n = 0, least = NO_PATH, largest = 0;
    for (const [k, times] of this.sections[a].classes)
      for (const [l, others] of this.sections[b].classes) {
        const cost = costMatrix[k * costs.classes + l], inside = a === b ? this.sections[a].inside.get(k * costs.classes + l) ?? 0 : 0;
        const weight = times * others - inside;
        if (weight === 0)
          continue;
        sum += cost === NO_PATH ? 0 : cost * weight;
        n += cost === NO_PATH ? 0 : weight;
        least = Math.min(least, cost);
        largest = Math.max(largest, cost);
      }
    return { mean: n > 0 ? sum / n : largest, least: Math.min(least, largest), largest };
  }

  // A group of one class (a leaf) is common, and two of them have one cost.
  #means() {
    const n = this.sections.length, means = new Float32Array(n * n), { costMatrix, costs } = this.plane;
    const only = this.sections.map(({ classes }) => classes.length === 1 ? classes[0][0] : -1);
    for (let a = 0; a < n; a++)
      for (let b = a; b < n; b++)
        means[a * n + b] = means[b * n + a] = a !== b && only[a] >= 0 && only[b] >= 0 ? costMatrix[only[a] * costs.classes + only[b]] : this.pair(a, b).mean;
    return means;
  }

  #colours() {
    const values = [...new Set([...this.plane.costs.values, ...this.plane.costs.inside_texts.flatMap(text => [...text].map(Number))])]
      .filter(value => value !== null && value > 0).sort((a, b) => a - b);
    const shade = cost => shadeOf(cost / (values[values.length - 1] ?? 1));
    this.colour = new Uint32Array(NO_PATH + 1).fill(0xff808080);
    for (let cost = 0; cost <= (values[values.length - 1] ?? 0); cost++) {
      const [r, g, b] = shade(cost);
      this.colour[cost] = 0xff000000 | b << 16 | g << 8 | r;
    }
    const told = values.length <= 14 ? values : range(0, 14).map(i => values[Math.round(i * (values.length - 1) / 13)]);
    legend("scale", [[0, "itself"], ...told.map(value => [value, `${value}`]), ...this.plane.costs.values.includes(null) ? [[NO_PATH, "no path"]] : []]
      .map(([value, text]) => [swatch(value === NO_PATH ? "#808080" : `rgb(${shade(value)})`), text]));
  }

  // ---- drawing

  get perDevice() {
    return this.size / this.order.length * this.zoom.k;
  }

  get near() {
    return this.perDevice >= 1 || this.sections.length === 1;
  }

  // Return the device at a pixel of an axis; -1: beside the map.
  #at(pixel, axis) {
    const i = Math.floor((pixel - MARGIN - this.#start(axis)) / this.perDevice);
    return i >= 0 && i < this.order.length ? i : -1;
  }

  // Return the position of the first device, from the map's corner.
  #start(axis) {
    return this.zoom[axis] + MARGIN * this.zoom.k - MARGIN;
  }

  draw() {
    if (this.order === null)
      return;
    const { size, context } = this, style = getComputedStyle(document.documentElement), image = context.createImageData(size, size);
    const cells = new Uint32Array(image.data.buffer), n = this.sections.length, { near, plane } = this;
    const columns = Int32Array.from({ length: size }, (_, i) => this.#at(MARGIN + i + 0.5, "x"));
    for (let y = 0; y < size; y++) {
      const row = this.#at(MARGIN + y + 0.5, "y");
      if (row < 0)
        continue;
      for (let x = 0; x < size; x++)
        if (columns[x] >= 0)
          cells[y * size + x] = this.colour[near ? plane.cost(this.order[row], this.order[columns[x]])
            : Math.round(this.means[this.sectionAt[row] * n + this.sectionAt[columns[x]]])];
    }
    context.fillStyle = style.getPropertyValue("--paper");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.putImageData(image, MARGIN, MARGIN);
    context.fillStyle = style.getPropertyValue("--ink");
    context.strokeStyle = "#8888";
    this.#axis("x");
    this.#axis("y");
    this.#cursor(style);
  }

  // Draw names of groups, or of devices if they fit, and lines between groups.
  #axis(axis) {
    const { context, size } = this, step = this.perDevice, start = this.#start(axis), devices = step >= 11;
    const least = Math.max(0, Math.floor(-start / step)), end = Math.min(this.order.length, Math.ceil((size - start) / step));
    const parts = devices ? range(least, end).map(i => [this.plane.deviceName(this.order[i]), i, 1]) : this.sections.map(({ name, first, n }) => [name, first, n]);
    let free = -Infinity;
    context.save();
    context.beginPath();
    context.rect(...axis === "x" ? [MARGIN - 6, 0, size + 12, MARGIN + size] : [0, MARGIN - 6, MARGIN + size, size + 12]);
    context.clip();
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    for (const [name, first, n] of parts) {
      const from = MARGIN + start + first * step, to = from + n * step;
      if (to < MARGIN || from > MARGIN + size)
        continue;
      if (n * step >= 9 && !devices)
        this.#line(axis, from);
      const middle = (Math.max(from, MARGIN) + Math.min(to, MARGIN + size)) / 2;
      if (middle < free)
        continue;
      free = middle + 12;
      context.save();
      context.translate(...axis === "x" ? [middle, MARGIN - 6] : [MARGIN - 6, middle]);
      context.rotate(axis === "x" ? -Math.PI / 2 : 0);
      context.textAlign = axis === "x" ? "left" : "right";
      context.fillText(shortened(name, MARGIN - 4), 0, 0);
      context.restore();
    }
    if (devices)
      for (const { first } of this.sections)
        this.#line(axis, MARGIN + start + first * step);
    context.restore();
  }

  #line(axis, at) {
    if (at < MARGIN || at > MARGIN + this.size)
      return;
    this.context.beginPath();
    this.context.moveTo(...axis === "x" ? [at, MARGIN] : [MARGIN, at]);
    this.context.lineTo(...axis === "x" ? [at, MARGIN + this.size] : [MARGIN + this.size, at]);
    this.context.stroke();
  }

  // Return the first device and the number of devices of the cell at a place.
  #cell(place) {
    const part = this.sections[this.sectionAt[place]];
    return this.near ? { first: place, n: 1 } : part;
  }

  #cursor(style) {
    const { context, perDevice } = this, [y, x] = this.cursor.map(place => this.#cell(place));
    const left = MARGIN + this.#start("x") + x.first * perDevice, top = MARGIN + this.#start("y") + y.first * perDevice;
    context.save();
    context.beginPath();
    context.rect(MARGIN, MARGIN, this.size, this.size);
    context.clip();
    for (const [colour, width] of [["#000", 4], [style.getPropertyValue("--mark"), 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(left - 1, top - 1, Math.max(x.n * perDevice, 3) + 2, Math.max(y.n * perDevice, 3) + 2);
    }
    context.restore();
  }

  // ---- text

  read() {
    const [row, column] = this.cursor, said = cost => cost === NO_PATH ? "no path" : `cost ${cost}`;
    let text;
    if (this.near) {
      const [a, b] = [this.order[row], this.order[column]];
      text = `${this.plane.deviceName(a)} → ${this.plane.deviceName(b)}: ${said(this.plane.cost(a, b))}`;
    } else {
      const [a, b] = [this.sectionAt[row], this.sectionAt[column]], { mean, least, largest } = this.pair(a, b);
      text = `${this.sections[a].name} → ${this.sections[b].name}: ` +
        (least === largest ? said(least) : `${said(+mean.toFixed(1))} in the mean, ${least} to ${largest === NO_PATH ? "no path" : largest}`);
    }
    document.getElementById("reading").value = text;
  }

  // Go to the cell of two devices, near enough to see each cell.
  goTo(a, b) {
    this.cursor = [this.placeOf[a], this.placeOf[b]];
    this.#centre(Math.max(this.zoom.k, 14 * this.order.length / this.size));
    this.read();
  }

  #centre(k) {
    const unit = this.size / this.order.length, [y, x] = this.cursor.map(place => MARGIN + (place + 0.5) * unit), middle = MARGIN + this.size / 2;
    const least = Math.max(1, Math.min(k, this.zoom.most));
    this.zoom.set(this.#within({ x: middle - x * least, y: middle - y * least, k: least }));
  }

  // Keep the view within the edges of the map.
  #within({ x, y, k }) {
    const low = (MARGIN + this.size) * (1 - k), high = MARGIN * (1 - k), bound = value => Math.min(high, Math.max(low, value));
    return { x: bound(x), y: bound(y), k };
  }

  out() {
    this.zoom.set({ x: 0, y: 0, k: 1 });
    this.read();
  }

  // Zoom in from two groups to their devices; from devices further in.
  nearer() {
    const parts = this.cursor.map(place => this.sections[this.sectionAt[place]]);
    if (this.near)
      return this.#centre(this.zoom.k * 1.6);
    const across = Math.max(...parts.map(part => part.n)), at = this.cursor;
    this.cursor = parts.map(part => part.first + (part.n - 1) / 2);
    this.#centre(Math.max(this.order.length / this.size * 1.01, this.order.length / across * 0.8));
    this.cursor = parts.map((part, i) => Math.max(part.first, Math.min(part.first + part.n - 1, at[i])));
    this.draw();
  }

  #ask() {
    const inputs = ["from", "to"].map(id => document.getElementById(id)), devices = inputs.map(input => this.plane.findDevice(input.value));
    inputs.forEach((input, i) => input.setCustomValidity(input.value.trim() === "" || devices[i] >= 0 ? "" : `Nothing is called ${input.value}.`));
    const wrong = inputs.find(input => !input.reportValidity());
    if (wrong)
      document.getElementById("reading").value = wrong.validationMessage;
    else if (devices.every(device => device >= 0))
      this.goTo(...devices);
  }

  // The canvas may be displayed smaller than it is.
  #place({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect(), scale = this.canvas.width / box.width;
    return [(clientX - box.left) * scale, (clientY - box.top) * scale];
  }

  #click(event) {
    const [x, y] = this.#place(event), column = this.#at(x, "x"), row = this.#at(y, "y");
    if (row < 0 || column < 0)
      return;
    this.cursor = [row, column];
    if (this.near)
      this.draw();
    else
      this.nearer();
    this.read();
  }

  #key(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.ctrlKey || event.altKey || event.metaKey)
      return;
    if (event.key in steps)
      this.#step(steps[event.key]);
    else if (event.key === "Enter" || event.key === "+")
      this.nearer();
    else if (event.key === "-")
      this.#centre(this.zoom.k / 1.6);
    else if (event.key === "Escape" || event.key === "0")
      this.out();
    else
      return;
    this.read();
    event.preventDefault();
  }

  #step(by) {
    this.cursor = this.cursor.map((place, i) => {
      const { first, n } = this.#cell(place), next = by[i] > 0 ? first + n : by[i] < 0 ? first - 1 : place;
      return next >= 0 && next < this.order.length ? next : place;
    });
    const outside = ["y", "x"].some((axis, i) => {
      const at = this.#start(axis) + (this.cursor[i] + 0.5) * this.perDevice;
      return at < 0 || at > this.size;
    });
    if (outside)
      this.#centre(this.zoom.k);
    else
      this.draw();
  }
}

// Return red, green and blue of a part of the ramp.
function shadeOf(part) {
  const at = Math.max(0, Math.min(1, part)) * (RAMP.length - 1), i = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[i].map((from, c) => Math.round(from + (RAMP[i + 1][c] - from) * (at - i)));
}
