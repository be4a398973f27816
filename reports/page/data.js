'use strict';
// The page of a run. Everything it shows stands in the element "data"; reports/page/page_data.h describes it.
// This file reads it and has what the others share.

const data = JSON.parse(document.getElementById('data').textContent);
const colours = ['#4c78a8', '#9ecae9', '#72b7b2', '#f58518', '#e45756', '#b279a2', '#bab0ac', '#54a24b', '#eeca3b', '#ff9da6'];
const categories = data.categories, kinds = categories.map((name) => name.replace(/_/g, ' '));
const element = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// An element with a class, and text or elements in it.
function make(tag, className, ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = n, unit = 0;
  while (Math.abs(value) >= 1024 && unit < 5) { value /= 1024; ++unit; }
  return (unit === 0 ? value : value.toFixed(1)) + ' ' + units[unit];
}
function flops(n) {
  const units = ['', 'k', 'M', 'G', 'T', 'P'];
  let value = n, unit = 0;
  while (value >= 1000 && unit < 5) { value /= 1000; ++unit; }
  return n === 0 ? '0' : value.toFixed(unit === 0 ? 0 : 2) + ' ' + units[unit] + 'FLOP';
}
function seconds(s) {
  return s === 0 ? '0' : s >= 1 ? s.toFixed(2) + ' s' : s >= 1e-3 ? (s * 1e3).toFixed(2) + ' ms' : (s * 1e6).toFixed(2) + ' µs';
}
const shown = { bytes: bytes, flops: flops, seconds: seconds, elements: (n) => n.toLocaleString('en') };
const percent = (part, whole) => (whole > 0 ? 100 * part / whole : 0).toFixed(part * 1000 < whole * 5 || part * 2 > whole ? 0 : 1) + ' %';

// Sets the text of an element's buttons, one of which may be on: [[label, title, function, on] …].
function buttons(id, list) {
  element(id).replaceChildren(...list.map(([label, title, act, on]) => {
    const button = make('button', on ? 'on' : '', label);
    button.type = 'button';
    button.title = title;
    if (on !== undefined) button.setAttribute('aria-pressed', String(on));
    button.onclick = act;
    return button;
  }));
}

// --- moments: what was alive after each event that changed it ------------------------------------------------
const width = categories.length, count = data.moments.length / 4;
const eventOf = new Float64Array(count), timeOf = new Float64Array(count);
const opOf = new Uint32Array(count), moduleOf = new Uint32Array(count);
for (let i = 0, event = 0, time = 0; i < count; ++i) {
  eventOf[i] = event += data.moments[4 * i];
  timeOf[i] = time += data.moments[4 * i + 1];
  opOf[i] = data.moments[4 * i + 2];
  moduleOf[i] = data.moments[4 * i + 3];
}

// Index of the last of sorted numbers that is at most `limit`; -1: none.
function lastUpTo(numbers, limit) {
  let low = 0, high = numbers.length;
  while (low < high) { const middle = (low + high) >> 1; if (numbers[middle] <= limit) low = middle + 1; else high = middle; }
  return low - 1;
}

// --- stays: a storage from one moment up to another ------------------------------------------------------------
const stays = [];
for (let i = 0, from = 0; i < data.stays.length; i += 8) {
  from += data.stays[i];
  const lasts = data.stays[i + 1];
  stays.push({ from: from, to: lasts === 0 ? count : from + lasts, size: data.stays[i + 2], category: data.stays[i + 3],
    op: data.names[data.stays[i + 4]], module: data.names[data.stays[i + 5]], tensor: data.names[data.stays[i + 6]], line: data.names[data.stays[i + 7]] });
}
const aliveAt = (moment) => stays.filter((stay) => stay.from <= moment && moment < stay.to);

// Live bytes of each category after each moment.
const live = new Float64Array(count * width);
for (const stay of stays) {
  live[stay.from * width + stay.category] += stay.size;
  if (stay.to < count) live[stay.to * width + stay.category] -= stay.size;
}
for (let i = width; i < live.length; ++i) live[i] += live[i - width];
const liveTotal = (i) => { let sum = 0; for (let c = 0; c < width; ++c) sum += live[i * width + c]; return sum; };
const used = categories.map((_, c) => { for (let i = c; i < live.length; i += width) if (live[i] > 0) return true; return false; });

// --- steps --------------------------------------------------------------------------------------------------------
// Phases have their events; in time they go from the moment at which the first of them begins.
const lastEvent = Math.max(data.events, 1), lastTime = count > 0 ? timeOf[count - 1] + 1 : 1;
function timeAt(event) {
  const i = lastUpTo(eventOf, event);
  return i < 0 ? 0 : timeOf[i];
}
const phases = data.phases.map(([name, step, begin, end, reserved]) => ({ name: name, step: step, begin: begin, end: Math.min(end, lastEvent), reserved: reserved }));
const stepNumbers = [...new Set(phases.map((phase) => phase.step))].filter((step) => step > 0);
const phaseOf = (moment) => phases.find((phase) => eventOf[moment] >= phase.begin && eventOf[moment] < phase.end);
const peakMoment = Math.max(0, lastUpTo(eventOf, data.peak_event));

// A module's path with numbers as "*": equal layers have the same.
const folded = (path) => path.replace(/(^|\.)\d+(?=\.|$)/g, '$1*');
