// page.js - the page around the drawing and the map: the choice of a plane, the search, details, tables.
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
  return svgElement("svg", { width: 22, height: 12 }, [svgElement("rect", { width: 22, height: 12, rx: 2, stroke: "#8888", fill: colour })]);
}

function lineSwatch(classes, width = 3) {
  return svgElement("svg", { width: 26, height: 8 }, [svgElement("line", { x2: 26, y1: 4, y2: 4, "stroke-width": width, class: classes })]);
}

function legend(id, rows) {
  byId(id).replaceChildren(...rows.map(([mark, text]) => element("li", [mark, text])));
}

// Return a time without fractions of a second.
const short = time => time ? time.replace("T", " ").replace(/\.\d+Z?$/, "").replace(/Z$/, "") + " UTC" : "";

// ---- details

function details({ head, rows, lists = [], found = [] }) {
  byId("details").replaceChildren(element("h3", head), table(["", ""], rows.filter(([, value]) => value !== null && value !== "")
    .map(([key, value]) => [element("th", key, { scope: "row" }), `${value}`])), ...lists.flatMap(([title, heads, list]) =>
    list.length > 0 ? [element("h4", title), table(heads, list)] : []), ...foundList(found));
}

// List the findings of the selected item, each with a link to its row.
function foundList(found) {
  const numbers = [...new Set(found.map(({ finding }) => finding))];
  return numbers.length === 0 ? [] : [element("h4", counted(numbers.length, "finding")), element("ul", numbers.slice(0, 50).map(i => {
    const { kind, where, what } = report.findings[i], button = element("button", `${kind}: ${where}`, { type: "button", class: "name" });
    button.addEventListener("click", () => showRow(i));
    return element("li", [element("span", HEALTH[findings.severity[i]], { class: HEALTH[findings.severity[i]] }), " ", button, ` ${what}`]);
  }))];
}

function showRow(i) {
  document.querySelectorAll("#findings .chosen").forEach(row => row.classList.remove("chosen"));
  const row = byId(`finding-${i}`);
  row.classList.add("chosen");
  row.closest("details")?.setAttribute("open", "");
  row.scrollIntoView({ block: "center" });
  (row.querySelector("button") ?? row).focus({ preventScroll: true });
}

// Go from a finding to its place: in the displayed plane, if it is there, too.
function showPlace(i) {
  const places = findings.places[i], place = places.find(({ plane }) => plane === number) ?? places[0];
  if (place.plane !== number)
    choosePlane(place.plane);
  drawing.goToFinding(place);
  byId("fabric").scrollIntoView();
}

function placeButton(i, text = report.findings[i].where) {
  const button = element("button", text, { type: "button", class: "name" });
  button.addEventListener("click", () => showPlace(i));
  return button;
}

const stateName = (plane, d) => d >= plane.live.devices ? "lost" : plane.devices.seen[d] & SEEN_MISSING ? "missing" : ["unknown", "down", "up"][plane.devices.state[d]];
const health = text => element("td", text, { class: text === "up" ? "word" : `word ${HEALTH.includes(text) ? text : "bad"}` });
const linkState = (plane, i) => i >= plane.live.links ? "lost" : plane.linkBad[i] ? "down" : plane.linkHealth[i] === WELL ? "up" : HEALTH[plane.linkHealth[i]];

// Return a name with a link to its box.
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
      ["state", missing[s] ? drawing.state({ kind: "switch", index: s }) : ""]], found: foundAt("switch", s),
    lists: [[counted(links.length, "cable"), ["port", "to", "port", "Gb/s", ""], links.slice(0, 200).map(([i, port, end, far]) =>
      [port, endLink(plane, end), far, plane.links.mbps[i] / 1000 || "?", health(linkState(plane, i))])]] });
}

function hostDetails(plane, h) {
  const { on, onPort, mbps, devices: { guid } } = plane, all = plane.hostDevices[h], bad = plane.hostBad[h], name = plane.hosts.name[h];
  const others = planes.filter(other => other !== plane && other.named(name)?.kind === "host").map(other => [other, other.named(name).index])
    .map(([other, index]) => `${other.name}: ${other.hostDevices[index].length - other.hostBad[index]} of ${other.hostDevices[index].length} up`);
  const groups = plane.groups.name.filter((_, g) => plane.groups.hosts[g].includes(h));
  details({ head: `Host ${plane.hosts.name[h]}`,
    rows: [["devices", bad > 0 ? `${all.length - bad} of ${all.length} up` : all.length], ["groups", groups.join(", ")],
      ["state", plane.isLost("host", h) ? "lost" : ""], ["other planes", others.join("; ")]], found: foundAt("host", h),
    lists: [["Devices", ["device", "switch", "port", "Gb/s", "state"], all.map(d => [
      element("span", plane.deviceName(d).slice(plane.hosts.name[h].length + 1), { title: `GUID 0x${guid[d].padStart(16, "0")}` }),
      on[d] < 0 ? "" : linkTo("switch", on[d], plane.switches.name[on[d]]), onPort[d] || "", mbps[d] / 1000 || "?",
      health(plane.deviceBad(d) || plane.deviceHealth(d) === WELL ? stateName(plane, d) : HEALTH[plane.deviceHealth(d)])])]] });
}

// Return the findings of an item and of its cables.
function foundAt(kind, index) {
  const { plane } = drawing, links = new Set(kind === "switch" ? plane.switchLinks[index] : plane.hostLinks[index]);
  return plane.findings.filter(found => found.link !== undefined ? links.has(found.link) : found.kind === kind && found.index === index);
}

function lineDetails({ from, to, links, bad, rates, findings: found }) {
  const { plane } = drawing;
  details({ head: `${from.name} – ${to.name}`, found, rows: [["cables", links.length], ["rates", ratesText({ rates })], ["down", bad || ""]],
    lists: [["Cables", ["from", "port", "to", "port", "Gb/s", ""], links.slice(0, 200).map(i => [endLink(plane, plane.links.a[i]), plane.links.a_port[i],
      endLink(plane, plane.links.b[i]), plane.links.b_port[i], plane.links.mbps[i] / 1000 || "?", health(linkState(plane, i))])]] });
}

function selected(item) {
  const { plane } = drawing;
  if (item.kind === "switch")
    switchDetails(plane, item.index);
  else if (item.kind === "host")
    hostDetails(plane, item.index);
  else
    details({ head: item.name, rows: [["switches", item.n.switches], ["hosts", item.n.hosts], ["down or missing", item.n.down || ""],
      ["down in part", item.n.partly || ""]], found: drawing.plane.findings.filter(({ kind, index }) => drawing.fold.holds(item, kind, index)) });
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

  // Sort whole names first, then beginnings, then other matches.
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
      this.list.replaceChildren(element("li", "no match"));
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

// Link the first word that is a host's or switch's name.
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
    const note = report.missing[id] !== undefined ? `Not available: ${report.missing[id]}` : rows.length === 0 ? none : more;
    byId(id).lastElementChild.replaceChildren(...note !== "" ? [element("p", note, { class: "note" })] : [], ...rows.length > 0 ? [made()] : []);
  };
  const word = (text, attributes) => element("td", text, { class: "word", ...attributes });
  const list = report.findings ?? [], alone = list.filter(row => !row.cause).length;
  const findingRows = (rows, first) => table(["Severity", "Kind", "Where", "What", "Since", "Advice"],
    rows.map((row, i) => [word(row.severity + (row.acked ? ", acknowledged" : ""), row.acked ? {} : { class: `word ${row.severity}` }), word(row.kind),
      element("td", findings.places[first + i].length > 0 ? placeButton(first + i) : row.where), element("td", withLink(row.what, names)), word(short(row.since)),
      row.kind === rows[i - 1]?.kind ? "" : row.hint]));
  const both = () => {
    const all = document.createDocumentFragment();
    all.append(findingRows(list.slice(0, alone), 0), ...alone === list.length ? [] :
      [element("details", [element("summary", `${list.length - alone} more follow from these`), findingRows(list.slice(alone), alone)])]);
    return all;
  };
  put("findings", list, "No findings.", both,
  report.n_findings > report.findings?.length ? `The gravest ${report.findings.length} of ${report.n_findings}: fabricctl check has all.` : "");
  byId("findings").querySelectorAll("tbody tr").forEach((row, i) => row.setAttribute("id", `finding-${i}`));
  put("changes", report.changes ?? [], "The history is empty.", () => table(["Time", "Generation", "Kind", "What", "Change", "Why"],
    [...report.changes].reverse().map(row => [word(short(row.time)), `${row.generation}`, word(row.kind + (row.planned ? ", planned" : "")),
      element("td", withLink(row.what, names)), [row.before, row.after].filter(Boolean).join(" → "), row.why])));
}

// Show the verdict: the number of findings, and the gravest ones with links to their places.
function showVerdict() {
  const n = findings.count(() => 1), bad = planes.reduce((sum, plane) => sum + plane.nBad, 0), worst = range(0, report.findings?.length ?? 0)
    .filter(i => !report.findings[i].acked && report.findings[i].severity !== "notice").slice(0, 3);
  const unknown = report.missing.findings !== undefined, cut = report.n_findings > report.findings?.length;
  const grade = unknown ? bad > 0 ? ERROR : NOTICE : tallyHealth(n);
  const said = unknown ? `Findings are not available (${report.missing.findings})${bad > 0 ? `; ${bad} cables, switches and devices are down or missing` : ""}.`
    : cut ? `${report.n_findings} findings, the gravest of them: ` : grade === WELL ? `No open findings${n.acknowledged > 0 ? `; ${tallyText(n)}` : ""}.`
      : `${tallyText(n)}${worst.length > 0 ? ": " : "."}`;
  byId("verdict").className = HEALTH[grade];
  byId("verdict").replaceChildren(said, ...worst.flatMap((i, k) => [k > 0 ? ", " : "", findings.places[i].length > 0 ? placeButton(i) : report.findings[i].where,
    ` ${report.findings[i].kind}`]), worst.length > 0 && tallyHealth(n) !== WELL && n.error + n.warning > worst.length ? ", …" : "");
}

function planeLabel({ name, nBad }, i) {
  const tally = findings.ofPlane(i);
  return report.planes.length < 2 ? name : `${name}: ${tallyText(tally) || (nBad > 0 ? `${nBad} down` : "well")}`;
}

// Show the legend: colours mean the state of cables, widths their speed.
function showLegend(plane) {
  const tally = new Map(plane.rates.map(rate => [rate, 0])), states = HEALTH.map(() => 0), gone = plane.linkBad.filter(Boolean).length;
  plane.links.mbps.slice(0, plane.live.links).forEach(mbps => tally.set(mbps, tally.get(mbps) + 1));
  plane.linkHealth.forEach((state, i) => { states[state] += plane.linkBad[i] ? 0 : 1; });
  legend("legend", [...HEALTH.map((name, i) => [lineSwatch(name), `${name}: ${counted(states[i], "cable")}`]).filter((_, i) => i === WELL || states[i] > 0),
    [lineSwatch("error bad-link"), `down, missing or lost: ${gone}`],
    ...plane.rates.filter(mbps => tally.get(mbps) > 0).map(mbps => [lineSwatch("width", 0.7 + 4 * mbps / plane.rates[0]), `${gbps(mbps)}: ${counted(tally.get(mbps), "cable")}`])]);
}

function showPlane(plane) {
  const { live } = plane, lost = plane.nSwitches - live.switches + plane.nHosts - live.hosts - plane.away.size;
  byId("title").textContent = plane.name;
  document.title = `Fabric ${plane.name}`;
  byId("summary").textContent = [plane.kind, counted(live.hosts, "host"), counted(live.devices, "device"), counted(live.switches, "switch"),
    counted(live.links, "cable"), lost > 0 ? `${lost} lost` : "", `generation ${plane.generation}`, `published ${short(plane.published)}`].filter(Boolean).join(" · ");
  showLegend(plane);
  byId("details").replaceChildren(hint);
  drawing.show(plane);
  heat.show(plane);
  search.show(plane);
  showTables(plane);
}

const hint = byId("details").firstElementChild;
const drawing = new Drawing(selected), heat = new Heat(), search = new Search();
const planes = report.planes.map(raw => new Plane(raw, report.lost ?? [])), findings = new Findings(report.findings ?? [], planes);
let number = 0;
byId("plane").append(...planes.map((plane, i) => element("option", planeLabel(plane, i), { value: i })));
byId("plane-choice").hidden = report.planes.length < 2;
byId("plane").addEventListener("change", () => choosePlane(+byId("plane").value));
byId("made").textContent = `Made by fabricctl ${report.version} at ${short(report.made)} of ${report.source}.`;
for (const [id, act] of [["fold", () => drawing.foldAll()], ["fit", () => drawing.fit()], ["nearer", () => drawing.by(1.5)], ["farther", () => drawing.by(1 / 1.5)]])
  byId(id).addEventListener("click", act);

function choosePlane(i) {
  number = i;
  byId("plane").value = i;
  showPlane(planes[i]);
}

showVerdict();
choosePlane(findings.worstPlane());
document.documentElement.dataset.ready = "yes"; // for programs that drive this page
