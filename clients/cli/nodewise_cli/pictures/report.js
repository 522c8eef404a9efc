"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const root = document.documentElement;

// Names come from what was recorded and may hold anything: they become text, never markup.
function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter(child => child !== undefined && child !== null));
  return made;
}
function digits(value, wanted) {
  const whole = Math.floor(Math.log10(Math.max(Math.abs(value), 1e-9))) + 1;
  const places = Math.max(0, wanted - Math.max(whole, 1));
  return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
}
const count = value => value.toLocaleString("en-US", { maximumFractionDigits: 2 });
const ms = seconds => seconds === null || seconds === undefined ? "-" : Math.abs(seconds) < 5e-7 ? "0" : digits(seconds * 1e3, 4);
const signed = seconds => Math.abs(seconds) < 5e-7 ? "0" : (seconds > 0 ? "+" : "\u2212") + ms(Math.abs(seconds));
const share = value => (100 * value).toFixed(1) + " %";
function shown(nanoseconds) {
  const size = Math.abs(nanoseconds);
  return size === 0 ? "0" : size >= 1e9 ? digits(nanoseconds / 1e9, 5) + " s" : size >= 1e6 ? digits(nanoseconds / 1e6, 5) + " ms"
    : size >= 1e3 ? digits(nanoseconds / 1e3, 4) + " \u00b5s" : Math.round(nanoseconds) + " ns";
}
function tick(nanoseconds) {
  const size = Math.abs(nanoseconds), text = (value, unit) => +value.toPrecision(9) + unit;
  return size === 0 ? "0" : size >= 1e9 ? text(nanoseconds / 1e9, " s") : size >= 1e6 ? text(nanoseconds / 1e6, " ms")
    : size >= 1e3 ? text(nanoseconds / 1e3, " \u00b5s") : text(nanoseconds, " ns");
}
const kindOf = name => data.kinds[name] || { words: name.replaceAll("_", " "), colour: data.other };
// Characters that turn the direction of text or end lines, which a canvas would obey across the whole label.
const plain = name => name.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map(place => parseInt(colour.slice(place, place + 2), 16));
  return red * 0.299 + green * 0.587 + blue * 0.114 > 150 ? "#111" : "#fff";
}
function table(columns, rows) {
  const head = el("tr", {}, ...columns.map(column => el("th", { scope: "col", class: column.number ? "number" : "" }, column.title)));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows));
}
const cell = (content, kind = "") => el("td", { class: kind, dir: kind === "number" ? undefined : "auto" }, content);

// --- what is highlighted: parts of steps, ranks and names, in bars, lists and lanes alike
const watchers = [];
let highlight = null;
function choose(wanted) {
  highlight = highlight && wanted && highlight.key === wanted.key ? null : wanted;
  for (const watcher of watchers) watcher();
}
const wantsPart = (kind, what, rank) => !highlight || highlight.byName === true
  || (highlight.part(kind, what) && (!highlight.ranks.length || highlight.ranks.includes(rank)));

// --- the head
document.title = data.title;
$("sentence").textContent = data.sentence;
$("rest").textContent = data.rest;
for (const [word, value] of data.facts) $("facts").append(el("div", {}, el("dt", {}, word), el("dd", {}, value)));
$("footer").textContent = data.footer;
const THEMES = [["", "Auto", "as the system has them"], ["light", "Light", "light"], ["dark", "Dark", "dark"]];
let theme = 0;
$("theme").addEventListener("click", () => {
  theme = (theme + 1) % THEMES.length;
  const [value, word, told] = THEMES[theme];
  if (value) root.dataset.theme = value; else delete root.dataset.theme;
  $("theme").textContent = word;
  $("theme").setAttribute("aria-label", "Colours: " + told);
  draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());

// --- bars
const order = Object.keys(data.kinds);
const place = kind => { const found = order.indexOf(kind); return found < 0 ? order.length : found; };
const longest = Math.max(...data.bars.map(bar => bar.step), 1e-12);
const named = new Set(data.bars.flatMap(bar => bar.parts.map(part => part.kind + ": " + part.what)));
function partChoice(kind, what, ranks = []) {
  const events = kind === "waiting" ? "transfer" : kind;  // an exchange's events hold the wait for it
  const others = what === "others";
  return {
    key: JSON.stringify([kind, what, ranks]), ranks,
    label: kind.replaceAll("_", " ") + (what === null ? "" : ": " + what),
    part: (ofKind, ofWhat) => ofKind === kind && (what === null || ofWhat === what),
    event: (ofKind, ofWhat) => ofKind === events
      && (what === null || (others ? !named.has(ofKind + ": " + ofWhat) : ofWhat === what)),
  };
}
function segment(bar, part, index, within) {
  const kind = kindOf(part.kind), mixed = Math.max(52, 100 - 16 * within);
  const late = part.waits_for_rank === null ? "" : ", for rank " + part.waits_for_rank;
  const text = part.kind.replaceAll("_", " ") + ": " + part.what + late + "\n" + ms(part.seconds) + " ms, " + share(part.seconds / bar.step)
    + " of the step of " + bar.name;
  const made = el("button", { type: "button", tabindex: index ? "-1" : "0", "aria-label": text.replace("\n", ", ") }, el("span", {}, part.seconds > 0.05 * longest ? part.kind.replaceAll("_", " ") : ""));
  made.style.width = 100 * part.seconds / longest + "%";
  made.style.background = within ? `color-mix(in srgb, ${kind.colour} ${mixed}%, var(--ground))` : kind.colour;
  made.style.color = within ? "inherit" : inkOn(kind.colour);
  made.addEventListener("click", () => choose(partChoice(part.kind, part.what)));
  made.addEventListener("mousemove", mouse => tell(text, mouse.clientX, mouse.clientY));
  made.addEventListener("mouseleave", hush);
  made.addEventListener("focus", () => { if (made.matches(":focus-visible")) { const box = made.getBoundingClientRect(); tell(text, box.left, box.bottom - 10); } });
  made.addEventListener("blur", hush);
  watchers.push(() => {
    made.classList.toggle("dim", !wantsPart(part.kind, part.what, bar.rank));
    made.setAttribute("aria-pressed", String(!!highlight && wantsPart(part.kind, part.what, bar.rank)));
  });
  return made;
}
$("bars-title").textContent = data.bars_title;
$("bars").hidden = !data.bars.length;
for (const bar of data.bars) {
  const parts = [...bar.parts].sort((one, other) => place(one.kind) - place(other.kind) || other.seconds - one.seconds);
  const met = {}, strip = el("div", { class: "bar", role: "group", "aria-label": "Parts of the step of " + bar.name });
  parts.forEach((part, index) => {
    met[part.kind] = (met[part.kind] ?? -1) + 1;
    strip.append(segment(bar, part, index, met[part.kind]));
  });
  strip.addEventListener("keydown", key => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[key.key], all = [...strip.children];
    if (!move) return;
    key.preventDefault();
    const to = all[Math.min(Math.max(all.indexOf(document.activeElement) + move, 0), all.length - 1)];
    for (const each of all) each.tabIndex = each === to ? 0 : -1;
    to.focus();
  });
  const classes = "row" + (bar.first ? " pair" : "");
  $("bar-rows").append(el("div", { class: classes }, el("div", { class: "name", title: bar.name, dir: "auto" }, bar.name), strip, el("div", { class: "total" }, ms(bar.step) + " ms")));
}
const present = [...new Set(data.bars.flatMap(bar => bar.parts.map(part => part.kind)))].sort((one, other) => place(one) - place(other));
for (const kind of present) {
  const patch = el("i");
  patch.style.background = kindOf(kind).colour;
  const made = el("button", { type: "button", onclick: () => choose(partChoice(kind, null)) }, patch, kind.replaceAll("_", " "));
  watchers.push(() => {
    const wanted = !highlight || data.bars.some(bar => bar.parts.some(part => part.kind === kind && wantsPart(kind, part.what, bar.rank)));
    made.classList.toggle("dim", !wanted);
    made.setAttribute("aria-pressed", String(!!highlight && wanted));
  });
  $("legend").append(made);
}
function patched(kind) {
  const patch = el("i");
  patch.style.background = kindOf(kind).colour;
  return el("td", { class: "kind" }, patch, kind.replaceAll("_", " "));
}
{
  const rows = new Map();
  data.bars.forEach((bar, index) => {
    for (const part of bar.parts) {
      const key = part.kind + ": " + part.what, row = rows.get(key) || { part, seconds: data.bars.map(() => 0) };
      row.seconds[index] += part.seconds;
      rows.set(key, row);
    }
  });
  const few = data.bars.length <= 8, mean = row => row.seconds.reduce((sum, each) => sum + each, 0) / data.bars.length;
  const listed = [...rows.values()].sort((one, other) => place(one.part.kind) - place(other.part.kind) || mean(other) - mean(one));
  const columns = [{ title: "part" }, { title: "what" }, ...(few ? data.bars.map(bar => ({ title: bar.name, number: true }))
    : [{ title: "mean", number: true }, { title: "most", number: true }, { title: "on", number: true }])];
  const numbers = row => few ? row.seconds.map(ms) : [ms(mean(row)), ms(Math.max(...row.seconds)), data.bars[row.seconds.indexOf(Math.max(...row.seconds))].name];
  const body = listed.map(row => el("tr", {}, patched(row.part.kind), cell(row.part.what, "wide"), ...numbers(row).map(text => cell(text, "number"))));
  const steps = { part: { kind: "", what: "" }, seconds: data.bars.map(bar => bar.step) };
  body.push(el("tr", { class: "total" }, cell("step"), cell(""), ...numbers(steps).map(text => cell(text, "number"))));
  $("parts").querySelector("summary").textContent = `Numbers: ${listed.length} parts, ms of a mean step`;
  $("parts").querySelector("div").append(table(columns, body));
}

// --- lists
function choice(row, wanted, label) {
  row.className = (row.className + " choice").trim();
  const button = el("button", { type: "button", class: "choose", dir: "auto", title: label.length > 90 ? label.slice(0, 2000) : undefined }, label);
  row.prepend(el("td", { class: "what", dir: "auto" }, button));
  row.addEventListener("click", () => choose(wanted));
  watchers.push(() => {
    const chosen = !!highlight && highlight.key === wanted.key;
    row.classList.toggle("chosen", chosen);
    button.setAttribute("aria-pressed", String(chosen));
  });
  return row;
}
function strategyChoice(one) {
  const parts = new Set(one.acts_on), acts = (kind, what) => !parts.size || parts.has(kind) || parts.has(kind + ": " + what);
  return {
    key: "strategy " + one.name, ranks: one.ranks, label: one.name, part: acts,
    event: (kind, what) => acts(kind, what) || (kind === "transfer" && acts("waiting", what)),
  };
}
function strategies(list) {
  const columns = [{ title: "change" }, { title: "gain ms", number: true }, { title: "90 % interval", number: true }, { title: "speed-up", number: true },
    { title: "how, and the line to change" }, { title: "rests on" }];
  return table(columns, list.map(one => choice(el("tr", {}, cell(signed(one.gain), "number"), cell(one.lower === null ? "-" : signed(one.lower) + " to " + signed(one.upper), "number"),
    cell(one.speedup.toFixed(3), "number"), el("td", { class: "wide", dir: "auto" }, el("code", {}, one.effort || "-")), cell(one.rests_on || "-", "wide note")), strategyChoice(one), one.name)));
}
if (data.strategies.length || data.combined.length) {
  $("help").hidden = false;
  $("help").querySelector(".scroll").append(strategies(data.strategies));
  const more = $("help").querySelector("details");
  if (data.combined.length) {
    more.querySelector("summary").textContent = `Several together: ${data.combined.length}`;
    more.querySelector("div").append(strategies(data.combined));
  } else more.remove();
}
function costChoice(one) {
  const ranks = one.rank === null ? [] : [one.rank], whats = new Map([["host", ["launch", "synchronisation"]], ["loader", ["loading"]]]);
  const part = data.bars.flatMap(bar => bar.parts).find(each => each.what === one.what);
  const made = part ? partChoice(part.kind, part.what, ranks) : {
    ranks, label: one.what, part: kind => (whats.get(one.kind) || []).includes(kind), event: kind => (whats.get(one.kind) || []).includes(kind),
  };
  if (!part && one.kind === "rank") made.part = made.event = kind => kind !== "";
  const names = ["kernel", "copy", "operator", "synchronisation"].includes(one.kind) ? one.what.replace(/\.\.\.$/, "") : null;
  if (names !== null && !part) { made.byName = true; made.name = name => name.startsWith(names); }
  return { ...made, key: "cost " + one.kind + one.what + one.rank };
}
function costs(list) {
  const columns = [{ title: "what" }, { title: "kind" }, { title: "rank", number: true }, { title: "ms a step", number: true }, { title: "gain ms", number: true }, { title: "why" }];
  return table(columns, list.map(one => choice(
    el("tr", { class: one.matters ? "" : "idle" }, cell(one.kind.replaceAll("_", " "), "kind"), cell(one.rank === null ? "all" : String(one.rank), "number"), cell(ms(one.seconds), "number"), cell(ms(one.gain), "number"), cell(one.why, "wide note")),
    costChoice(one), one.what)));
}
if (data.costs.length) {
  $("costs").hidden = false;
  const matter = data.costs.filter(one => one.matters), others = data.costs.filter(one => !one.matters), more = $("costs").querySelector("details");
  $("costs").querySelector(".scroll").append(matter.length ? costs(matter) : "Nothing that matters.");
  if (others.length) {
    more.querySelector("summary").textContent = `What does not matter: ${others.length}`;
    more.querySelector("div").append(costs(others));
  } else more.remove();
}
const differs = seconds => cell(signed(seconds), "number " + (Math.abs(seconds) < 5e-7 ? "" : seconds > 0 ? "more" : "less"));
if (data.differences) {
  $("differences").hidden = $("changed").hidden = false;
  const columns = [{ title: "part" }, { title: "differs ms", number: true }, { title: "before", number: true }, { title: "after", number: true }, { title: "kind" }];
  const sum = data.differences, least = 0.005 * Math.max(...sum.parts.map(one => Math.abs(one.after - one.before)));
  const small = sum.parts.filter(one => Math.abs(one.after - one.before) < least);
  const rows = sum.parts.filter(one => !small.includes(one)).map(one => choice(el("tr", {}, differs(one.after - one.before), cell(ms(one.before), "number"), cell(ms(one.after), "number"), patched(one.kind)), partChoice(one.kind, one.what), one.what));
  if (small.length) {
    const [old, now] = ["before", "after"].map(side => small.reduce((taken, one) => taken + one[side], 0));
    rows.push(el("tr", { class: "idle" }, cell(`${small.length} more parts that differ less`), differs(now - old), cell(ms(old), "number"), cell(ms(now), "number"), cell("")));
  }
  rows.push(el("tr", { class: "total" }, cell(sum.unit), differs(sum.after - sum.before), cell(ms(sum.before), "number"), cell(ms(sum.after), "number"), cell("")));
  $("differences").querySelector(".scroll").append(table(columns, rows));
  const byName = name => ({ key: "name " + name, ranks: [], label: name, byName: true, part: () => true, event: () => true, name: other => other === name });
  const more = [{ title: "kernel or call" }, { title: "differs ms", number: true }, { title: "before", number: true }, { title: "after", number: true }, { title: "times before", number: true }, { title: "times after", number: true }, { title: "in" }];
  $("changed").querySelector(".scroll").append(table(more, sum.events.map(one => choice(el("tr", {}, differs(one.after - one.before), cell(one.before_count ? ms(one.before) : "new", "number"), cell(one.after_count ? ms(one.after) : "gone", "number"),
    cell(count(one.before_count), "number"), cell(count(one.after_count), "number"), patched(one.kind)), byName(one.name), one.name))));
  if (!sum.events.length) $("changed").hidden = true;
}

// --- lanes
const canvas = $("lanes"), frame = $("frame"), pen = canvas.getContext("2d");
const ROW = 16, GAP = 4, AXIS = 24, LABELS = 186, LEAST = 20;
let from = 0, to = 1, width = 0, view = 0, total = 0, grabbed = null, selected = null, printing = false, matches = [], match = -1, sought = null;
const colours = {};
function prepare() {
  const lanes = data.lanes;
  lanes.partKinds = lanes.parts.map(text => text.split(": ", 1)[0]);
  lanes.partWhats = lanes.parts.map(text => text.slice(text.indexOf(": ") + 2));
  lanes.plain = lanes.names.map(plain);
  let top = AXIS, before = null;
  for (const lane of lanes.lanes) {
    if (lane.group !== before) { top += GAP; lane.first = true; before = lane.group; }
    lane.top = top;
    top += lane.rows.length * ROW + 3;
    lane.text = plain(lane.group + "  " + lane.name);
    for (const row of lane.rows) {
      let at = 0;
      row.begin = Float64Array.from(row.begin, step => at += step);
      row.end = row.begin.map((begin, index) => begin + row.duration[index]);
    }
  }
  total = top + 4;
  from = lanes.begin; to = Math.max(lanes.end, lanes.begin + 1);
  $("height").style.height = total + "px";
  frame.style.height = `min(66vh, ${total + 2}px)`;
  $("note").textContent = lanes.note;
  $("timeline-title").textContent = lanes.title;
}
const x = time => LABELS + (time - from) / (to - from) * (width - LABELS);
const timeAt = at => from + (at - LABELS) / (width - LABELS) * (to - from);
function colourOf(row, index) {
  const part = row.part[index];
  if (part >= 0) return kindOf(data.lanes.partKinds[part]).colour;
  return colours.faint;  // nothing waits for it
}
function wanted(lane, row, index) {
  if (sought) return sought[row.name[index]];
  if (!highlight) return true;
  if (highlight.ranks.length && !highlight.ranks.includes(lane.rank)) return false;
  if (highlight.byName) return highlight.name(data.lanes.names[row.name[index]]);
  const part = row.part[index];
  return part < 0 ? false : highlight.event(data.lanes.partKinds[part], data.lanes.partWhats[part]);
}
function firstAt(row, time) {
  let low = 0, high = row.end.length;
  while (low < high) { const middle = (low + high) >> 1; if (row.end[middle] < time) low = middle + 1; else high = middle; }
  return low;
}
function draw() {
  if (!data.lanes) return;
  const style = getComputedStyle(root), ratio = window.devicePixelRatio || 1;
  const paper = { ink: "#000000", soft: "#444444", line: "#bbbbbb", ground: "#ffffff", faint: "#ccd2d9" };
  for (const name of Object.keys(paper)) colours[name] = printing ? paper[name] : style.getPropertyValue("--" + name).trim();
  width = frame.clientWidth;
  const height = printing ? Math.min(total, 2200) : frame.clientHeight;
  view = printing ? 0 : frame.scrollTop;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    $("height").style.height = Math.max(0, total - height) + "px";
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11.5px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.direction = "ltr";
  const ticks = axis(height);
  for (const lane of data.lanes.lanes) {
    const top = lane.top - view;
    if (top > height || top + lane.rows.length * ROW < AXIS) continue;
    pen.save();
    pen.beginPath(); pen.rect(0, AXIS, width, height - AXIS); pen.clip();
    if (lane.first) { pen.fillStyle = colours.line; pen.fillRect(0, top - 4, width, 1); }
    pen.fillStyle = lane.host ? colours.soft : colours.ink;
    pen.save(); pen.beginPath(); pen.rect(0, top, LABELS - 8, ROW); pen.clip(); pen.fillText(lane.text, 8, top + ROW / 2); pen.restore();
    pen.beginPath(); pen.rect(LABELS, AXIS, width - LABELS, height - AXIS); pen.clip();
    lane.rows.forEach((row, depth) => rowOf(lane, row, top + depth * ROW));
    pen.restore();
  }
  pen.fillStyle = colours.ground; pen.fillRect(0, 0, width, AXIS - 1);
  pen.fillStyle = colours.line; pen.fillRect(0, AXIS - 1, width, 1);
  pen.fillStyle = colours.soft;
  for (const [time, text] of ticks) pen.fillText(text, x(time) + 3, AXIS / 2);
}
function axis(height) {
  const least = (to - from) / Math.max(1, (width - LABELS) / 110), power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= least), found = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    pen.fillStyle = colours.line; pen.globalAlpha = 0.5; pen.fillRect(x(time), AXIS, 1, height - AXIS); pen.globalAlpha = 1;
    found.push([time, tick(Math.abs(time) < step / 2 ? 0 : time)]);
  }
  return found;
}
function rowOf(lane, row, top) {
  // What is narrower than a pixel is drawn once a pixel: the one that is wanted wins.
  let lastPixel = -1, lastWanted = false;
  for (let index = firstAt(row, from); index < row.begin.length && row.begin[index] <= to; index++) {
    const left = x(row.begin[index]), right = x(row.end[index]), broad = right - left, is = wanted(lane, row, index);
    if (broad < 1) {
      const pixel = Math.floor(left);
      if (pixel === lastPixel && (lastWanted || !is)) continue;
      lastPixel = pixel; lastWanted = is;
    }
    const clipped = Math.max(left, LABELS - 2), size = Math.max(Math.min(right, width + 2) - clipped, 1), waiting = row.waiting ? row.waiting[index] : 0;
    pen.globalAlpha = is ? 1 : 0.14;
    const colour = colourOf(row, index);
    pen.fillStyle = colour;
    pen.fillRect(clipped, top, broad > 3 ? size - 0.5 : size, ROW - 2);
    if (waiting > 0) {
      const until = Math.min(x(row.begin[index] + waiting), right);
      pen.fillStyle = kindOf("waiting").colour;
      if (until > clipped) pen.fillRect(clipped, top, until - clipped, ROW - 2);
    }
    if (size > 46) {
      pen.save(); pen.beginPath(); pen.rect(clipped, top, size - 4, ROW); pen.clip();
      pen.fillStyle = inkOn(waiting > 0 && x(row.begin[index] + waiting) > clipped + 40 ? kindOf("waiting").colour : colour);
      pen.fillText(data.lanes.plain[row.name[index]].slice(0, 200), clipped + 4, top + ROW / 2 - 0.5); pen.restore();
    }
    if (selected && selected.row === row && selected.index === index) {
      pen.globalAlpha = 1; pen.strokeStyle = colours.ink; pen.lineWidth = 2; pen.strokeRect(clipped + 1, top, Math.max(size - 2, 2), ROW - 2);
    }
  }
  pen.globalAlpha = 1;
}
function hitAt(clientX, clientY) {
  const box = canvas.getBoundingClientRect(), at = clientX - box.left, level = clientY - box.top + view;
  if (at < LABELS || clientY - box.top < AXIS) return null;
  const time = timeAt(at), slack = 2 * (to - from) / Math.max(1, width - LABELS);
  for (const lane of data.lanes.lanes) {
    const depth = Math.floor((level - lane.top) / ROW);
    if (level < lane.top || depth >= lane.rows.length) continue;
    const row = lane.rows[depth];
    let best = null;
    for (let index = firstAt(row, time - slack); index < row.begin.length && row.begin[index] <= time + slack; index++) {
      if (!best || (row.begin[index] <= time && row.end[index] >= time)) best = { lane, row, index };
    }
    return best;
  }
  return null;
}
function told({ lane, row, index }) {
  const part = row.part[index], waiting = row.waiting ? row.waiting[index] : 0;
  let text = data.lanes.names[row.name[index]] + "\n" + data.lanes.kinds[row.kind[index]] + ", " + lane.group + ", " + lane.name
    + "\n" + shown(row.duration[index]) + " from " + shown(row.begin[index]);
  if (waiting > 0) text += "\nwaits " + shown(waiting) + ", transfers " + shown(row.duration[index] - waiting);
  if (part >= 0) text += "\npart of " + data.lanes.parts[part].replaceAll("_", " ");
  return text;
}
function tell(text, left, top) {
  const tip = $("tip");
  tip.textContent = text.length > 700 ? text.slice(0, 340) + " ... " + text.slice(-340) : text;
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(left + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, top + 18 + tip.offsetHeight > innerHeight ? top - tip.offsetHeight - 10 : top + 18) + "px";
}
function hush() { $("tip").hidden = true; }
function select(hit) {
  selected = hit;
  $("selected").textContent = hit ? told(hit).replaceAll("\n", "; ") : highlight ? "Highlighted: " + highlight.label : "";
  draw();
}
function zoom(factor, centre = (from + to) / 2) {
  const span = Math.min(Math.max((to - from) * factor, LEAST), 4 * (data.lanes.end - data.lanes.begin)), at = (centre - from) / (to - from);
  from = centre - at * span; to = from + span; draw();
}
function pan(share) { const span = to - from; from += share * span; to = from + span; draw(); }
function whole() { from = data.lanes.begin; to = Math.max(data.lanes.end, data.lanes.begin + 1); draw(); }
function reveal({ lane, row, index }) {
  const begin = row.begin[index], end = row.end[index];
  if (begin < from || end > to || x(end) - x(begin) < 3) {
    const span = Math.max((end - begin) * 12, Math.min(to - from, (data.lanes.end - data.lanes.begin) / 12), LEAST);
    from = (begin + end) / 2 - span / 2; to = from + span;
  }
  const level = lane.top + lane.rows.indexOf(row) * ROW;
  if (level < frame.scrollTop + AXIS || level > frame.scrollTop + frame.clientHeight - 2 * ROW) frame.scrollTop = level - frame.clientHeight / 2;
  select({ lane, row, index });
}
function search() {
  const text = $("search").value.toLowerCase();
  matches = []; match = -1; sought = null;
  if (text) {
    const has = data.lanes.names.map(name => name.toLowerCase().includes(text));
    for (const lane of data.lanes.lanes) for (const row of lane.rows)
      for (let index = 0; index < row.begin.length; index++) if (has[row.name[index]]) matches.push({ lane, row, index });
    matches.sort((one, other) => one.row.begin[one.index] - other.row.begin[other.index]);
    sought = has;
  }
  const sum = matches.reduce((taken, one) => taken + one.row.duration[one.index], 0);
  $("matches").textContent = text ? (matches.length ? `${matches.length.toLocaleString("en-US")} events, ${shown(sum)}` : "no match") : "";
  draw();
}
function go(step) {
  if (!matches.length) return;
  match = (match + step + matches.length) % matches.length;
  reveal(matches[match]);
  $("matches").textContent = `${match + 1} of ${matches.length.toLocaleString("en-US")}`;
}
if (data.lanes) {
  $("timeline").hidden = false;
  prepare();
  canvas.addEventListener("wheel", wheel => {
    if (!wheel.ctrlKey && !wheel.altKey && Math.abs(wheel.deltaX) < Math.abs(wheel.deltaY)) return;
    wheel.preventDefault();
    if (wheel.ctrlKey || wheel.altKey) zoom(Math.exp(wheel.deltaY * 0.002), timeAt(wheel.clientX - canvas.getBoundingClientRect().left));
    else pan(wheel.deltaX / width);
  }, { passive: false });
  canvas.addEventListener("pointerdown", mouse => {
    grabbed = { at: mouse.clientX, from, to, moved: false };
    canvas.setPointerCapture(mouse.pointerId); canvas.classList.add("grabbed");
  });
  canvas.addEventListener("pointermove", mouse => {
    if (grabbed) {
      const moved = (mouse.clientX - grabbed.at) / (width - LABELS) * (grabbed.to - grabbed.from);
      grabbed.moved ||= Math.abs(mouse.clientX - grabbed.at) > 3;
      from = grabbed.from - moved; to = grabbed.to - moved; draw();
    } else {
      const hit = hitAt(mouse.clientX, mouse.clientY);
      if (hit) tell(told(hit), mouse.clientX, mouse.clientY); else hush();
    }
  });
  canvas.addEventListener("pointerup", mouse => {
    if (grabbed && !grabbed.moved) select(hitAt(mouse.clientX, mouse.clientY));
    grabbed = null; canvas.classList.remove("grabbed");
  });
  canvas.addEventListener("pointerleave", hush);
  canvas.addEventListener("dblclick", whole);
  frame.addEventListener("scroll", () => draw());
  frame.addEventListener("keydown", key => {
    const does = { ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
      w: () => zoom(0.6), s: () => zoom(1 / 0.6), a: () => pan(-0.15), d: () => pan(0.15), Home: whole }[key.key];
    if (!does || key.ctrlKey || key.metaKey) return;
    key.preventDefault(); does();
  });
  $("in").addEventListener("click", () => zoom(0.6));
  $("out").addEventListener("click", () => zoom(1 / 0.6));
  $("all").addEventListener("click", whole);
  $("search").addEventListener("input", search);
  $("search").addEventListener("keydown", key => { if (key.key === "Enter") { key.preventDefault(); go(key.shiftKey ? -1 : 1); } });
  $("next").addEventListener("click", () => go(1));
  $("previous").addEventListener("click", () => go(-1));
  new ResizeObserver(() => draw()).observe(frame);
  addEventListener("beforeprint", () => { printing = true; draw(); });
  addEventListener("afterprint", () => { printing = false; draw(); });
  watchers.push(() => select(null));
}
$("clear").addEventListener("click", () => choose(null));
watchers.push(() => { $("clear").disabled = !highlight; });
addEventListener("beforeprint", () => { $("parts").open = true; });
document.addEventListener("keydown", key => { if (key.key === "Escape") { hush(); if (highlight) choose(null); } });
for (const watcher of watchers) watcher();
draw();
root.dataset.ready = "yes";
