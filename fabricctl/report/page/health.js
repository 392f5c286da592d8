// health.js - the findings: where in the planes each of them is, and how each plane is.
"use strict";

const WELL = 0, NOTICE = 1, WARNING = 2, ERROR = 3, HEALTH = ["well", "notice", "warning", "error"];

// A finding's number is its place in the report.
class Findings {
  constructor(list, planes) {
    this.list = list;
    this.planes = planes;
    // What the operator acknowledged is known: it stays seen, and is no alarm.
    this.severity = list.map(({ severity, acked }) => acked ? NOTICE : Math.max(NOTICE, HEALTH.indexOf(severity)));
    this.places = list.map(finding => planes.flatMap((plane, i) => this.#placesIn(plane, finding).map(place => ({ plane: i, ...place }))));
    planes.forEach((plane, i) => this.#take(plane, i));
  }

  // A cable, a switch or a host, by its GUIDs; of what has none, by the name in front.
  #placesIn(plane, { ends, where }) {
    const [first, second] = (ends ?? []).map(({ guid, port }) => plane.findEnd(BigInt(guid), port));
    const found = [first, second].filter(end => end !== undefined), link = found.find(end => end.link !== undefined)?.link;
    if (found.length > 0)
      return [{ ...found.find(({ kind }) => kind === "host") ?? found[0], link: second === undefined && ends[0].port === null ? undefined : link }];
    const item = ends?.length > 0 ? undefined : plane.named(where) ?? plane.named(where.split(/[\s,;:[\]]+/)[0]);
    return item === undefined ? [] : [item];
  }

  // What the plane draws: of each cable, switch and host the gravest.
  #take(plane, number) {
    plane.findings = this.places.flatMap((places, i) => places.filter(place => place.plane === number).map(place => ({ ...place, finding: i, severity: this.severity[i] })));
    for (const { link, severity } of plane.findings)
      if (link !== undefined)
        plane.linkHealth[link] = Math.max(plane.linkHealth[link], severity);
  }

  // How many of each severity are open, and how many acknowledged: of a plane, or of all. What hangs on another one is in that.
  count(wanted = () => true) {
    const n = { error: 0, warning: 0, notice: 0, acknowledged: 0 };
    this.list.forEach((finding, i) => { n[finding.acked ? "acknowledged" : finding.severity] += finding.cause ? 0 : wanted(this.places[i]); });
    return n;
  }

  ofPlane(number) {
    return this.count(places => places.some(({ plane }) => plane === number) ? 1 : 0);
  }

  // The plane with the worst: what is grave first, then what is broken without a finding.
  worstPlane() {
    const rank = this.planes.map((plane, i) => {
      const { error, warning, notice } = this.ofPlane(i);
      return [error, warning, plane.nBad, notice];
    });
    const order = (a, b) => a.map((n, i) => n - b[i]).find(difference => difference !== 0) ?? 0;
    return rank.reduce((best, row, i) => order(row, rank[best]) > 0 ? i : best, 0);
  }
}

const tallyText = ({ error, warning, notice, acknowledged }) =>
  [error ? counted(error, "error") : "", warning ? counted(warning, "warning") : "", notice ? counted(notice, "notice") : "",
    acknowledged ? `${acknowledged} acknowledged` : ""].filter(Boolean).join(", ");
const tallyHealth = ({ error, warning, notice }) => error ? ERROR : warning ? WARNING : notice ? NOTICE : WELL;
