// Live bytes over a step, with the device's limit; a moment is chosen with a click, a tap or the keyboard.

const timeline = element('timeline');
const hidden = new Array(width).fill(false);
const room = { left: 74, right: 6, top: 20, bottom: 46 };
const view = { axis: 'time', step: 0, from: 0, to: 1 };
let chosen = peakMoment;

const positions = () => (view.axis === 'time' ? timeOf : eventOf);
const positionOf = (event) => (view.axis === 'time' ? timeAt(event) : event);

// The whole of the step that is shown, or of the run.
function wholeRange() {
  const of = phases.filter((phase) => view.step === 0 || phase.step === view.step);
  if (!of.length) return [0, view.axis === 'time' ? lastTime : lastEvent];
  const from = positionOf(of[0].begin), last = of[of.length - 1].end;
  const to = last >= lastEvent ? (view.axis === 'time' ? lastTime : lastEvent) : positionOf(last);
  return [from, Math.max(to, from + 1)];
}
function showWhole() { [view.from, view.to] = wholeRange(); }
function chooseStep(step) { view.step = step; showWhole(); drawTimeline(); drawSwitches(); }
function chooseAxis(axis) { view.axis = axis; showWhole(); drawTimeline(); drawSwitches(); }

function moveView(from, size) {
  const [first, last] = wholeRange(), fitting = Math.min(last - first, Math.max((last - first) / 1e5, size));
  view.from = Math.max(first, Math.min(last - fitting, from));
  view.to = view.from + fitting;
  drawTimeline();
}
function zoomAt(middle, factor) {
  const size = view.to - view.from, share = (middle - view.from) / size;
  moveView(middle - size * factor * share, size * factor);
}

const visibleTotal = (i) => { let sum = 0; for (let c = 0; c < width; ++c) if (!hidden[c]) sum += live[i * width + c]; return sum; };

function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  canvas.width = Math.max(1, Math.round(w * ratio));
  canvas.height = Math.max(1, Math.round(h * ratio));
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, w, h);
  context.font = '11px system-ui, sans-serif';
  return [context, w, h];
}

// The fullest moment in each column of pixels: no peak is lost however many there are.
function columnsOf(plot) {
  const columns = new Int32Array(plot).fill(-1), at = positions(), size = view.to - view.from;
  let i = lastUpTo(at, view.from);
  for (let x = 0; x < plot; ++x) {
    const limit = view.from + size * (x + 1) / plot;
    let best = i, value = i >= 0 ? visibleTotal(i) : -1;
    while (i + 1 < count && at[i + 1] < limit) { ++i; const t = visibleTotal(i); if (t > value) { value = t; best = i; } }
    columns[x] = best;
  }
  return columns;
}

// What the drawing functions share: made anew for each drawing.
let plot = null;
const xOf = (position) => room.left + (position - view.from) / (view.to - view.from) * plot.width;
const yOf = (size) => room.top + plot.height - size * plot.scale;

function drawScale() {
  const context = plot.context;
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  context.strokeStyle = style('--line');
  context.fillStyle = style('--soft');
  let step = 1;
  while (plot.most / step > 6) step *= 2;
  for (let size = 0; size <= plot.most * 1.05; size += step) {
    context.beginPath(); context.moveTo(room.left, yOf(size)); context.lineTo(plot.right, yOf(size)); context.stroke();
    context.fillText(bytes(size), room.left - 6, yOf(size));
  }
  // Times count from the beginning of the step.
  const span = view.to - view.from, begin = wholeRange()[0];
  const raw = span / (plot.width / 110), power = Math.pow(10, Math.floor(Math.log10(raw)));
  const tick = Math.max(1, power * [1, 2, 5, 10].find((factor) => factor * power >= raw));
  context.textAlign = 'center';
  context.textBaseline = 'top';
  for (let at = Math.ceil((view.from - begin) / tick) * tick; at <= view.to - begin; at += tick) {
    const x = xOf(begin + at);
    if (x > plot.right - 20) break;
    context.fillText(view.axis === 'time' ? seconds(at / 1e9) : Math.round(begin + at).toLocaleString('en'), Math.max(x, room.left + 12), plot.bottom + 26);
  }
}

function drawAreas() {
  const context = plot.context, columns = plot.columns;
  for (let c = 0; c < width; ++c) {
    if (hidden[c]) continue;
    context.fillStyle = colours[c % colours.length];
    for (let x = 0; x < plot.width; ++x) {
      const i = columns[x];
      if (i < 0 || live[i * width + c] <= 0) continue;
      let below = 0;
      for (let k = 0; k < c; ++k) if (!hidden[k]) below += live[i * width + k];
      const own = live[i * width + c] * plot.scale;
      context.fillRect(room.left + x, yOf(below) - own, 1.05, own);
    }
  }
}

function drawPhases() {
  const context = plot.context;
  context.textBaseline = 'top';
  for (const phase of phases) {
    if (view.step !== 0 && phase.step !== view.step) continue;
    const x0 = Math.max(room.left, xOf(positionOf(phase.begin)));
    const x1 = Math.min(plot.right, phase.end >= lastEvent ? xOf(view.axis === 'time' ? lastTime : lastEvent) : xOf(positionOf(phase.end)));
    if (x1 <= x0) continue;
    context.strokeStyle = style('--soft');
    context.globalAlpha = 0.5;
    context.beginPath(); context.moveTo(x0, room.top); context.lineTo(x0, plot.bottom + 20); context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = style('--ink');
    context.textAlign = 'center';
    const name = view.step === 0 && phase.step > 0 ? phase.name + ' ' + phase.step : phase.name;
    for (const text of [name, phase.name.slice(0, 3) + '.'])
      if (x1 - x0 > context.measureText(text).width + 6) { context.fillText(text, (x0 + x1) / 2, plot.bottom + 6); break; }
    // What the allocator has reserved in this phase at most.
    if (phase.reserved > 0 && phase.reserved <= plot.most * 1.05) {
      context.strokeStyle = style('--ink');
      context.setLineDash([2, 3]);
      context.beginPath(); context.moveTo(x0, yOf(phase.reserved)); context.lineTo(x1, yOf(phase.reserved)); context.stroke();
      context.setLineDash([]);
    }
  }
}

function drawLimit() {
  if (!plot.limit) return;
  const context = plot.context, y = yOf(plot.limit);
  context.strokeStyle = context.fillStyle = style('--bad');
  context.lineWidth = 1.5;
  context.beginPath(); context.moveTo(room.left, y); context.lineTo(plot.right, y); context.stroke();
  context.lineWidth = 1;
  context.textAlign = 'left';
  context.textBaseline = 'bottom';
  context.fillText('the allocator can have ' + bytes(plot.limit), room.left + 4, y - 2);
}

// The request for which there was no room, on top of what was allocated.
function drawFailure() {
  const failed = data.failed;
  if (!failed) return;
  const end = view.axis === 'time' ? lastTime : lastEvent, x = Math.min(plot.right - 7, xOf(end));
  if (end < view.from || end > view.to) return;
  const context = plot.context, base = yOf(liveTotal(Math.max(0, count - 1))), high = Math.max(4, failed.requested * plot.scale);
  context.fillStyle = context.strokeStyle = style('--bad');
  context.fillRect(x - 1, base - high, 8, high);
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  outlined('asks for ' + bytes(failed.requested) + ': out of memory', x - 6, Math.max(room.top + 26, base - high / 2));
}

// Text that can be read on top of the areas.
function outlined(text, x, y) {
  const context = plot.context, colour = context.fillStyle;
  context.lineWidth = 3;
  context.lineJoin = 'round';
  context.strokeStyle = style('--paper');
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
  context.lineWidth = 1;
}

function drawMark(moment, label, colour, dash) {
  const at = positions()[moment];
  if (count === 0 || at < view.from || at > view.to) return;
  const context = plot.context, x = Math.min(plot.right, xOf(at)), flip = x > plot.right - 110;
  context.strokeStyle = context.fillStyle = colour;
  context.setLineDash(dash);
  context.lineWidth = 1.5;
  context.beginPath(); context.moveTo(x, room.top - 6); context.lineTo(x, plot.bottom); context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1;
  context.textAlign = flip ? 'right' : 'left';
  context.textBaseline = 'top';
  if (label) context.fillText(label, x + (flip ? -4 : 4), 2);
}

function drawTimeline() {
  const [context, w, h] = prepare(timeline);
  plot = { context: context, width: Math.max(1, Math.floor(w - room.left - room.right)), height: h - room.top - room.bottom, right: w - room.right, bottom: h - room.bottom };
  plot.columns = columnsOf(plot.width);
  let most = 1;
  for (const i of plot.columns) if (i >= 0) most = Math.max(most, visibleTotal(i));
  if (data.failed) most = Math.max(most, liveTotal(Math.max(0, count - 1)) + data.failed.requested);
  // The limit is drawn where it is near; far above the curve it would flatten that.
  plot.limit = data.limit > 0 && data.limit < 2.5 * most ? data.limit : 0;
  plot.most = Math.max(most, plot.limit);
  plot.scale = plot.height / (plot.most * 1.05);
  drawScale();
  drawAreas();
  drawPhases();
  drawLimit();
  drawFailure();
  drawMark(peakMoment, 'peak ' + bytes(liveTotal(peakMoment)), style('--ink'), [4, 3]);
  if (chosen !== peakMoment) drawMark(chosen, '', style('--accent'), []);
  element('timeline-hint').textContent = 'Bytes as they are asked for, by category; dotted: what the allocator has reserved at most in a phase' +
    (plot.limit || data.limit <= 0 ? '' : ' (its limit, ' + bytes(data.limit) + ', is far above)') + '. ' +
    (view.axis === 'time' ? 'Time is that of an ideal device: a lower bound.' : 'The axis counts events.') +
    ' Click for what is alive there. Arrow keys move, + and − zoom (also Ctrl with the wheel), P is the peak.';
}

function drawLegend() {
  element('legend').replaceChildren(...categories.map((name, c) => {
    if (!used[c]) return '';
    const swatch = make('i');
    swatch.style.background = colours[c % colours.length];
    const button = make('button', hidden[c] ? 'off' : '', swatch, kinds[c]);
    button.title = 'show or hide';
    button.setAttribute('aria-pressed', String(!hidden[c]));
    button.onclick = () => { hidden[c] = !hidden[c]; drawLegend(); drawTimeline(); };
    return button;
  }));
}

function drawSwitches() {
  const steps = stepNumbers.map((step) => ['step ' + step, 'only this step', () => chooseStep(step), view.step === step]);
  buttons('steps', stepNumbers.length > 0 ? [...steps, ['all', 'setup and all steps', () => chooseStep(0), view.step === 0]] : []);
  buttons('axis', [['time', 'estimated time', () => chooseAxis('time'), view.axis === 'time'], ['events', 'one event after the other', () => chooseAxis('event'), view.axis === 'event']]);
  const middle = () => (view.from + view.to) / 2;
  buttons('zoom', [['−', 'zoom out', () => zoomAt(middle(), 2)], ['+', 'zoom in', () => zoomAt(middle(), 0.5)], ['whole', 'the whole step', () => { showWhole(); drawTimeline(); }]]);
  const jumps = [['peak', 'the moment with the most live bytes', () => goTo(peakMoment)]];
  if (data.failed) jumps.push(['the failing request', 'what is alive when memory runs out', () => goTo(count - 1)]);
  buttons('jumps', jumps);
}

// Chooses a moment, and shows the step and the part of it in which it lies.
function goTo(moment) {
  const phase = phaseOf(moment);
  if (phase && view.step !== 0 && phase.step !== view.step && phase.step > 0) { view.step = phase.step; showWhole(); drawSwitches(); }
  const at = positions()[moment];
  if (at < view.from || at > view.to) showWhole();
  chooseMoment(moment);
}

function momentText(i) {
  const phase = phaseOf(i), begin = phase && phase.step > 0 ? timeAt(phases.find((p) => p.step === phase.step).begin) : 0;
  const where = phase ? phase.name + (phase.step > 0 ? ', step ' + phase.step : '') + ', ' + seconds((timeOf[i] - begin) / 1e9) : '';
  const at = [data.names[opOf[i]], data.names[moduleOf[i]]].filter((text) => text).join(' of ');
  return [where, at, bytes(liveTotal(i)) + ' live'].filter((text) => text).join(' · ');
}

function showTip(tip, canvas, event, text) {
  tip.textContent = text;
  tip.style.display = 'block';
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  tip.style.left = Math.max(0, Math.min(x + 14, box.width - tip.offsetWidth)) + 'px';
  tip.style.top = Math.max(0, Math.min(y + 14, box.height - tip.offsetHeight)) + 'px';
}

// The fullest moment of the column of pixels at a point of the screen.
function momentAt(clientX) {
  const box = timeline.getBoundingClientRect();
  const x = Math.max(0, Math.min(plot.width - 1, Math.floor(clientX - box.left - room.left)));
  return plot.columns[x];
}

let dragged = null;
timeline.addEventListener('wheel', (e) => {
  if (!e.ctrlKey && !e.metaKey) return;  // the page scrolls
  e.preventDefault();
  const box = timeline.getBoundingClientRect();
  zoomAt(view.from + (e.clientX - box.left - room.left) / plot.width * (view.to - view.from), Math.exp(e.deltaY * 0.0015));
}, { passive: false });
timeline.addEventListener('pointerdown', (e) => { dragged = { x: e.clientX, from: view.from, moved: false }; });
timeline.addEventListener('pointerup', (e) => {
  if (dragged && !dragged.moved && momentAt(e.clientX) >= 0) chooseMoment(momentAt(e.clientX));
  dragged = null;
});
timeline.addEventListener('pointercancel', () => { dragged = null; });
timeline.addEventListener('dblclick', () => { showWhole(); drawTimeline(); });
timeline.addEventListener('pointerleave', () => { dragged = null; element('timeline-tip').style.display = 'none'; });
timeline.addEventListener('pointermove', (e) => {
  if (dragged && Math.abs(e.clientX - dragged.x) > 4) dragged.moved = true;
  if (dragged && dragged.moved) return moveView(dragged.from + (dragged.x - e.clientX) / plot.width * (view.to - view.from), view.to - view.from);
  const i = momentAt(e.clientX);
  if (i < 0) return;
  const lines = momentText(i).split(' · ');
  categories.forEach((name, c) => { if (live[i * width + c] > 0 && !hidden[c]) lines.push('  ' + kinds[c] + ' ' + bytes(live[i * width + c])); });
  showTip(element('timeline-tip'), timeline, e, lines.join('\n'));
});

// The next moment to the left or right that is drawn: the fullest one of another column of pixels.
function neighbour(steps) {
  const at = positions()[chosen], x = Math.round(xOf(at) - room.left);
  for (let column = Math.max(0, Math.min(plot.width - 1, x + steps)); column >= 0 && column < plot.width; column += Math.sign(steps))
    if (plot.columns[column] >= 0 && (plot.columns[column] - chosen) * steps > 0) return plot.columns[column];
  return chosen;
}
timeline.addEventListener('keydown', (e) => {
  const far = e.shiftKey ? 25 : 1, middle = count > 0 ? positions()[chosen] : 0;
  const drawn = plot.columns.filter((i) => i >= 0);
  const acts = { ArrowLeft: () => chooseMoment(neighbour(-far)), ArrowRight: () => chooseMoment(neighbour(far)), ArrowDown: () => chooseMoment(neighbour(-far)),
    ArrowUp: () => chooseMoment(neighbour(far)), PageDown: () => chooseMoment(neighbour(-50)), PageUp: () => chooseMoment(neighbour(50)),
    Home: () => chooseMoment(drawn[0]), End: () => chooseMoment(drawn[drawn.length - 1]), p: () => goTo(peakMoment), P: () => goTo(peakMoment),
    '+': () => zoomAt(middle, 0.5), '=': () => zoomAt(middle, 0.5), '-': () => zoomAt(middle, 2), 0: () => { showWhole(); drawTimeline(); } };
  if (!acts[e.key] || e.ctrlKey || e.metaKey || e.altKey || !drawn.length) return;
  e.preventDefault();
  acts[e.key]();
});
