// health.js - the findings: their places in the planes, and the health of each plane.
"use strict";

const WELL = 0, NOTICE = 1, WARNING = 2, ERROR = 3, HEALTH = ["well", "notice", "warning", "error"];

// The findings. A finding's number is its place in the report.
class Findings {
  constructor(list, planes) {
    this.list = list;
    this.planes = planes;
    // Acknowledged findings stay visible, and raise no alarm.
    this.severity = list.map(({ severity, acked }) => acked ? NOTICE : Math.max(NOTICE, HEALTH.indexOf(severity)));
    this.places = list.map(finding => planes.flatMap((plane, i) => this.#placesIn(plane, finding).map(place => ({ plane: i, ...place }))));
    planes.forEach((plane, i) => this.#take(plane, i));
  }

  // Find a cable, a switch or a host by its GUIDs; without GUIDs, by the name in front.
  #placesIn(plane, { ends, where }) {
    const [first, second] = (ends ?? []).map(({ guid, port }) => plane.findEnd(BigInt(guid), port));
    const found = [first, second].filter(end => end !== undefined), link = found.find(end => end.link !== undefined)?.link;
    if (found.length > 0)
      return [{ ...found.find(({ kind }) => kind === "host") ?? found[0], link: second === undefined && ends[0].port === null ? undefined : link }];
    const item = ends?.length > 0 ? undefined : plane.named(where) ?? plane.named(where.split(/[\s,;:[\]]+/)[0]);
    return item === undefined ? [] : [item];
  }

  // Set the findings of a plane: for each cable, switch and host the gravest.
  #take(plane, number) {
    plane.findings = this.places.flatMap((places, i) => places.filter(place => place.plane === number).map(place => ({ ...place, finding: i, severity: this.severity[i] })));
    for (const { link, severity } of plane.findings)
      if (link !== undefined)
        plane.linkHealth[link] = Math.max(plane.linkHealth[link], severity);
  }

  // Count the open findings of each severity and the acknowledged ones, of a plane or of all. Findings that follow
  // from another one are not counted.
  count(wanted = () => true) {
    const n = { error: 0, warning: 0, notice: 0, acknowledged: 0 };
    this.list.forEach((finding, i) => { n[finding.acked ? "acknowledged" : finding.severity] += finding.cause ? 0 : wanted(this.places[i]); });
    return n;
  }

  ofPlane(number) {
    return this.count(places => places.some(({ plane }) => plane === number) ? 1 : 0);
  }

  // Return the worst plane: by grave findings first, then by faults without a finding.
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
