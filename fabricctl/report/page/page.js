// page.js - what is around the drawing and the map: the choice of a plane, the search, details, tables.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);

function element(name, content = [], attributes = {}) {
  const made = document.createElement(name);
  made.append(...[content].flat().filter(part => part !== null && part !== undefined));
  for (const [key, value] of Object.entries(attributes))
    made.setAttribute(key, value);
  return made;
}

function table(heads, rows) {
  return element("table", [element("thead", element("tr", heads.map(head => element("th", head, { scope: "col" })))),
    element("tbody", rows.map(row => element("tr", row.map(cell => cell instanceof HTMLTableCellElement ? cell : element("td", cell ?? "")))))]);
}

function swatch(colour) {
  const svg = d3.create("svg").attr("width", 22).attr("height", 12);
  svg.append("rect").attr("width", 22).attr("height", 12).attr("rx", 2).attr("stroke", "#8888").attr("fill", colour);
  return svg.node();
}

function lineSwatch(classes) {
  const svg = d3.create("svg").attr("width", 26).attr("height", 8);
  svg.append("line").attr("x2", 26).attr("y1", 4).attr("y2", 4).attr("stroke-width", 3).attr("class", classes);
  return svg.node();
}

function legend(id, rows) {
  byId(id).replaceChildren(...rows.map(([mark, text]) => element("li", [mark, text])));
}

// A time without what is less than a second.
const short = time => time ? time.replace("T", " ").replace(/\.\d+Z?$/, "").replace(/Z$/, "") + " UTC" : "";

// ---- details

function details({ head, rows, lists = [] }) {
  byId("details").replaceChildren(element("h3", head), table(["", ""], rows.filter(([, value]) => value !== null && value !== "")
    .map(([key, value]) => [element("th", key, { scope: "row" }), `${value}`])), ...lists.flatMap(([title, heads, list]) =>
    list.length > 0 ? [element("h4", title), table(heads, list)] : []));
}

const stateName = (plane, d) => plane.devices.seen[d] & SEEN_MISSING ? "missing" : ["unknown", "down", "up"][plane.devices.state[d]];
const health = text => element("td", text, { class: text === "up" ? "word" : "word bad" });

// A name that leads to its box.
function linkTo(kind, index, text) {
  const button = element("button", text, { type: "button", class: "name" });
  button.addEventListener("click", () => drawing.goTo(drawing.fold.items[kind][index]));
  return button;
}

function endLink(plane, end) {
  return end === null ? plane.endName(end) : end >= 0 ? linkTo("switch", end, plane.endName(end)) : linkTo("host", plane.hostOf[-1 - end], plane.endName(end));
}

function switchDetails(plane, s) {
  const { name, guid, level, ports, missing, unit, rail } = plane.switches;
  const links = plane.switchLinks[s].map(i => [i, ...plane.otherEnd(i, end => end === s)]).sort((a, b) => a[1] - b[1]);
  details({ head: `Switch ${name[s]}`,
    rows: [["GUID", `0x${guid[s].padStart(16, "0")}`], ["level", level[s]], ["ports", ports[s]], ["unit", unit[s]], ["rail", rail[s]],
      ["state", missing[s] ? "missing" : ""]],
    lists: [[counted(links.length, "cable"), ["port", "to", "port", "Gb/s", ""], links.slice(0, 200).map(([i, port, end, far]) =>
      [port, endLink(plane, end), far, plane.links.mbps[i] / 1000 || "?", health(plane.linkBad[i] ? "down" : "up")])]] });
}

function hostDetails(plane, h) {
  const { on, onPort, mbps, devices: { guid } } = plane, all = range(plane.firstDevice[h], plane.firstDevice[h + 1]);
  const groups = plane.groups.name.filter((_, g) => plane.groups.hosts[g].includes(h));
  details({ head: `Host ${plane.hosts.name[h]}`,
    rows: [["devices", all.length], ["groups", groups.join(", ")]],
    lists: [["Devices", ["device", "switch", "port", "Gb/s", "state"], all.map(d => [
      element("span", plane.deviceName(d).slice(plane.hosts.name[h].length + 1), { title: `GUID 0x${guid[d].padStart(16, "0")}` }),
      on[d] < 0 ? "" : linkTo("switch", on[d], plane.switches.name[on[d]]), onPort[d] || "", mbps[d] / 1000 || "?", health(stateName(plane, d))])]] });
}

function selected(item) {
  const { plane } = drawing;
  if (item.kind === "switch")
    switchDetails(plane, item.index);
  else if (item.kind === "host")
    hostDetails(plane, item.index);
  else
    details({ head: item.name, rows: [["switches", item.n.switches], ["hosts", item.n.hosts], ["down or missing", item.n.down || ""]] });
}

// ---- search

class Search {
  constructor() {
    this.input = byId("search");
    this.list = byId("found");
    this.found = [];
    this.input.addEventListener("input", () => this.#look());
    this.input.addEventListener("keydown", event => this.#key(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.#close(), 150));
    document.addEventListener("keydown", event => {
      if (event.key !== "/" || event.target.matches?.("input"))
        return;
      this.input.focus();
      event.preventDefault();
    });
  }

  show({ switches, hosts, devices, hostOf }) {
    const guids = hosts.name.map(() => "");
    devices.guid.forEach((guid, d) => { guids[hostOf[d]] += ` 0x${guid.padStart(16, "0")}`; });
    const entry = kind => (name, index) => ({ kind, name, index,
      text: `${name} ${kind === "host" ? guids[index] : `0x${switches.guid[index].padStart(16, "0")}`}`.toLowerCase() });
    this.all = [...switches.name.map(entry("switch")), ...hosts.name.map(entry("host"))];
    this.input.value = "";
    this.#close();
  }

  // Whole names first, then beginnings, then what has it anywhere.
  #look() {
    const wanted = this.input.value.trim().toLowerCase(), rank = ({ name }) => name.toLowerCase() === wanted ? 0 : name.toLowerCase().startsWith(wanted) ? 1 : 2;
    this.found = wanted === "" ? [] : this.all.filter(({ text }) => text.includes(wanted)).sort((a, b) => rank(a) - rank(b) || naturally(a.name, b.name)).slice(0, 12);
    this.at = 0;
    this.list.replaceChildren(...this.found.map((entry, i) => {
      const row = element("li", [entry.name, " ", element("small", entry.kind)], { role: "option", id: `found-${i}`, "aria-selected": i === 0 });
      row.addEventListener("mousedown", event => event.preventDefault());
      row.addEventListener("click", () => this.#go(entry));
      return row;
    }));
    if (wanted !== "" && this.found.length === 0)
      this.list.replaceChildren(element("li", "nothing is called like that"));
    this.list.hidden = wanted === "";
    this.input.setAttribute("aria-expanded", wanted !== "");
    this.#mark();
  }

  #mark() {
    [...this.list.children].forEach((row, i) => row.setAttribute("aria-selected", i === this.at && this.found.length > 0));
    this.input.setAttribute("aria-activedescendant", this.found.length > 0 ? `found-${this.at}` : "");
  }

  #key(event) {
    const n = this.found.length;
    if (event.key === "Escape")
      this.#close();
    else if (event.key === "Enter" && n > 0)
      this.#go(this.found[this.at]);
    else if (n > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp"))
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : n - 1)) % n;
    else
      return;
    event.preventDefault();
    this.#mark();
  }

  #go({ kind, index }) {
    this.#close();
    drawing.goTo(drawing.fold.items[kind][index]);
  }

  #close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", false);
    this.input.removeAttribute("aria-activedescendant");
  }
}

// ---- tables

// The first word that is a host's or switch's name becomes a way to it.
function withLink(text, names) {
  const word = (text ?? "").split(/[\s,;:[\]]+/).find(part => names.has(part));
  if (word === undefined)
    return text ?? "";
  const [before] = text.split(word, 1);
  return [before, linkTo(...names.get(word), word), text.slice(before.length + word.length)];
}

function showTables(plane) {
  const names = new Map([...plane.hosts.name.map((name, i) => [name, ["host", i]]), ...plane.switches.name.map((name, i) => [name, ["switch", i]])]);
  const put = (id, rows, none, made, more = "") => {
    const note = report.missing[id] !== undefined ? `Not known: ${report.missing[id]}` : rows.length === 0 ? none : more;
    byId(id).lastElementChild.replaceChildren(...note !== "" ? [element("p", note, { class: "note" })] : [], ...rows.length > 0 ? [made()] : []);
  };
  const word = (text, attributes) => element("td", text, { class: "word", ...attributes });
  const findings = (report.findings ?? []).filter(row => !row.cause), behind = (report.findings ?? []).filter(row => row.cause);
  const findingRows = rows => table(["Severity", "Kind", "Where", "What", "Since", "What to do"],
    rows.map((row, i) => [word(row.severity + (row.acked ? ", acknowledged" : ""), row.acked ? {} : { class: `word ${row.severity}` }), word(row.kind),
      element("td", withLink(row.where, names)), element("td", withLink(row.what, names)), word(short(row.since)),
      row.kind === rows[i - 1]?.kind ? "" : row.hint]));
  put("findings", report.findings ?? [], "Nothing looks wrong.", () => element("div", [findingRows(findings), ...behind.length === 0 ? [] :
    [element("details", [element("summary", `${behind.length} more hang on these`), findingRows(behind)])]]),
  report.n_findings > report.findings?.length ? `The gravest ${report.findings.length} of ${report.n_findings}: fabricctl check has all.` : "");
  put("changes", report.changes ?? [], "The history has nothing.", () => table(["Time", "Generation", "Kind", "What", "Change", "Why"],
    [...report.changes].reverse().map(row => [word(short(row.time)), `${row.generation}`, word(row.kind + (row.planned ? ", planned" : "")),
      element("td", withLink(row.what, names)), [row.before, row.after].filter(Boolean).join(" → "), row.why])));
}

function showPlane(plane) {
  const tally = new Map(plane.rates.map(rate => [rate, 0])), bad = plane.linkBad.filter(Boolean).length;
  plane.links.mbps.forEach(mbps => tally.set(mbps, tally.get(mbps) + 1));
  byId("title").textContent = plane.name;
  document.title = `Fabric ${plane.name}`;
  byId("summary").textContent = [plane.kind, counted(plane.nHosts, "host"), counted(plane.nDevices, "device"), counted(plane.nSwitches, "switch"),
    counted(plane.nLinks, "cable"), `generation ${plane.generation}`, `published ${short(plane.published)}`,
    ...report.findings_summary ? [`findings: ${report.findings_summary}`] : []].join(" · ");
  legend("legend", [...plane.rates.map(mbps => [lineSwatch(`rate-${rateClass(plane, mbps)}`), `${gbps(mbps)}: ${counted(tally.get(mbps), "cable")}`]),
    [lineSwatch("bad-link"), `down or missing: ${bad}`]]);
  byId("details").replaceChildren(hint);
  drawing.show(plane);
  heat.show(plane);
  search.show(plane);
  showTables(plane);
}

const hint = byId("details").firstElementChild;
const drawing = new Drawing(selected), heat = new Heat(), search = new Search();
const planes = new Map();
byId("plane").append(...report.planes.map(({ name }, i) => element("option", name, { value: i })));
byId("plane-choice").hidden = report.planes.length < 2;
byId("plane").addEventListener("change", () => choosePlane(+byId("plane").value));
byId("made").textContent = `Made by fabricctl ${report.version} at ${short(report.made)} of ${report.source}.`;
for (const [id, act] of [["fold", () => drawing.foldAll()], ["fit", () => drawing.fit()], ["nearer", () => drawing.by(1.5)], ["farther", () => drawing.by(1 / 1.5)]])
  byId(id).addEventListener("click", act);

function choosePlane(i) {
  if (!planes.has(i))
    planes.set(i, new Plane(report.planes[i]));
  showPlane(planes.get(i));
}

choosePlane(0);
document.documentElement.dataset.ready = "yes"; // for who drives this page
