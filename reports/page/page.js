'use strict';
// The page of a run. Everything it shows stands in the element "data"; reports/html_page.h describes it.
(function () {
  const data = JSON.parse(document.getElementById('data').textContent);
  const colours = ['#4c78a8', '#9ecae9', '#72b7b2', '#f58518', '#e45756', '#b279a2', '#bab0ac', '#54a24b', '#eeca3b'];
  const categories = data.categories;
  const element = (id) => document.getElementById(id);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function bytes(n) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let value = n, unit = 0;
    while (Math.abs(value) >= 1024 && unit < 4) { value /= 1024; ++unit; }
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

  // --- the head ---------------------------------------------------------------------------------------------
  document.title = data.model + ' – metaprof';
  element('title').textContent = data.model + ' on ' + data.device;
  element('subtitle').textContent = data.options;
  element('verdict').textContent = data.verdict;
  element('verdict').className = data.fits ? 'fits' : 'fails';
  for (const [label, value] of data.facts) {
    const box = document.createElement('div');
    box.className = 'fact';
    const b = document.createElement('b');
    b.textContent = typeof value === 'number' ? bytes(value) : value;
    const span = document.createElement('span');
    span.textContent = label;
    box.append(b, span);
    element('facts').append(box);
  }

  // --- the timeline -----------------------------------------------------------------------------------------
  // data.changes: for each change of a category's live bytes event, operator, module, category, difference.
  const width = categories.length, count = data.changes.length / 5;
  const at = new Uint32Array(count), ops = new Uint32Array(count), modules = new Uint32Array(count);
  const live = new Float64Array(count * width);
  {
    const now = new Float64Array(width);
    let event = 0;
    for (let i = 0; i < count; ++i) {
      event += data.changes[5 * i];
      at[i] = event;
      ops[i] = data.changes[5 * i + 1];
      modules[i] = data.changes[5 * i + 2];
      now[data.changes[5 * i + 3]] += data.changes[5 * i + 4];
      live.set(now, i * width);
    }
  }
  const hidden = new Array(width).fill(false);
  const used = categories.map((_, c) => { for (let i = 0; i < count; ++i) if (live[i * width + c] > 0) return true; return false; });
  const total = (i) => { let sum = 0; for (let c = 0; c < width; ++c) if (!hidden[c]) sum += live[i * width + c]; return sum; };
  const last = Math.max(data.events, 1);
  let from = 0, to = last;

  // Index of the last change at or before an event; -1: none.
  function find(event) {
    let low = 0, high = count;
    while (low < high) { const middle = (low + high) >> 1; if (at[middle] <= event) low = middle + 1; else high = middle; }
    return low - 1;
  }

  function prepare(canvas) {
    const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    canvas.width = Math.max(1, Math.round(w * ratio));
    canvas.height = Math.max(1, Math.round(h * ratio));
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, w, h);
    return [context, w, h];
  }

  const left = 74, bottom = 34, top_ = 8;
  function niceStep(most) {
    let step = 1;
    while (most / step > 6) step *= 2;
    return step;
  }

  function drawTimeline() {
    const [context, w, h] = prepare(element('timeline'));
    const plot = w - left - 4, height = h - bottom - top_;
    // For each column of pixels the fullest moment in it: no peak is lost however many events there are.
    const columns = new Int32Array(plot).fill(-1);
    let most = 1;
    for (let x = 0; x < plot; ++x) {
      const first = find(from + (to - from) * x / plot), beyond = find(from + (to - from) * (x + 1) / plot);
      let best = first, value = first >= 0 ? total(first) : 0;
      for (let i = Math.max(first, 0); i <= beyond; ++i) { const t = total(i); if (t > value || best < 0) { value = t; best = i; } }
      columns[x] = best;
      most = Math.max(most, value);
    }
    // The limit is drawn where it is near; far above the curve it would flatten that.
    const limit = data.limit > 0 && data.limit < 2.5 * most ? data.limit : 0;
    most = Math.max(most, limit);
    const scale = height / (most * 1.05);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.strokeStyle = style('--line');
    context.fillStyle = style('--soft');
    context.textAlign = 'right';
    const step = niceStep(most);
    for (let y = 0; y <= most * 1.05; y += step) {
      const py = top_ + height - y * scale;
      context.beginPath(); context.moveTo(left, py); context.lineTo(w - 4, py); context.stroke();
      context.fillText(bytes(y), left - 6, py);
    }
    for (let c = 0; c < width; ++c) {
      if (hidden[c]) continue;
      context.fillStyle = colours[c % colours.length];
      for (let x = 0; x < plot; ++x) {
        const i = columns[x];
        if (i < 0) continue;
        let below = 0;
        for (let k = 0; k < c; ++k) if (!hidden[k]) below += live[i * width + k];
        const own = live[i * width + c] * scale;
        if (own > 0) context.fillRect(left + x, top_ + height - below * scale - own, 1.05, own);
      }
    }
    context.textAlign = 'left';
    context.textBaseline = 'top';
    for (const [name, begin, end] of data.phases) {
      const x0 = Math.max(left, left + (begin - from) / (to - from) * plot);
      const x1 = Math.min(w - 4, left + (end - from) / (to - from) * plot);
      if (x1 <= x0) continue;
      context.strokeStyle = style('--soft');
      context.globalAlpha = 0.5;
      context.beginPath(); context.moveTo(x0, top_); context.lineTo(x0, h - bottom + 14); context.stroke();
      context.globalAlpha = 1;
      context.fillStyle = style('--soft');
      if (x1 - x0 > context.measureText(name).width + 6) context.fillText(name, x0 + 3, h - bottom + 4);
    }
    context.fillText('events ' + Math.round(from).toLocaleString('en') + ' – ' + Math.round(to).toLocaleString('en'), left, h - 14);
    if (limit) {
      const y = top_ + height - limit * scale;
      context.strokeStyle = context.fillStyle = style('--bad');
      context.lineWidth = 1.5;
      context.beginPath(); context.moveTo(left, y); context.lineTo(w - 4, y); context.stroke();
      context.lineWidth = 1;
      context.textBaseline = 'bottom';
      context.fillText('the allocator can have ' + bytes(limit), left + 4, y - 2);
      context.textBaseline = 'top';
    }
    if (data.failed && to >= data.events) {
      const x = left + (data.events - from) / (to - from) * plot;
      context.strokeStyle = context.fillStyle = style('--bad');
      context.textAlign = 'right';
      context.beginPath(); context.moveTo(x - 1, top_); context.lineTo(x - 1, top_ + height); context.stroke();
      context.fillText('out of memory', x - 5, top_ + 14);
      context.textAlign = 'left';
    }
    const peak = data.peak_event;
    if (peak >= from && peak <= to) {
      const x = left + (peak - from) / (to - from) * plot;
      context.strokeStyle = style('--ink');
      context.setLineDash([4, 3]);
      context.beginPath(); context.moveTo(x, top_); context.lineTo(x, top_ + height); context.stroke();
      context.setLineDash([]);
      context.fillStyle = style('--ink');
      context.textAlign = x > w - 90 ? 'right' : 'left';
      context.fillText('peak', x + (x > w - 90 ? -4 : 4), top_ + 1);
    }
  }

  function drawLegend() {
    const legend = element('legend');
    legend.textContent = '';
    categories.forEach((name, c) => {
      if (!used[c]) return;
      const button = document.createElement('button');
      button.className = hidden[c] ? 'off' : '';
      button.title = 'show or hide';
      const swatch = document.createElement('i');
      swatch.style.background = colours[c % colours.length];
      button.append(swatch, name);
      button.onclick = () => { hidden[c] = !hidden[c]; drawLegend(); drawTimeline(); };
      legend.append(button);
    });
  }

  function showTip(tip, canvas, event, text) {
    tip.textContent = text;
    tip.style.display = 'block';
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    tip.style.left = Math.max(0, Math.min(x + 14, box.width - tip.offsetWidth)) + 'px';
    tip.style.top = Math.max(0, Math.min(y + 14, box.height - tip.offsetHeight)) + 'px';
  }

  const timeline = element('timeline');
  const eventAt = (clientX) => {
    const box = timeline.getBoundingClientRect();
    return from + (clientX - box.left - left) / (box.width - left - 4) * (to - from);
  };
  let dragged = null;
  timeline.addEventListener('wheel', (e) => {
    e.preventDefault();
    const middle = eventAt(e.clientX), factor = Math.exp(e.deltaY * 0.0015);
    const size = Math.min(last, Math.max(10, (to - from) * factor)), share = (middle - from) / (to - from);
    from = Math.max(0, Math.min(last - size, middle - size * share));
    to = from + size;
    drawTimeline();
  }, { passive: false });
  timeline.addEventListener('pointerdown', (e) => { dragged = { x: e.clientX, from: from, to: to }; timeline.setPointerCapture(e.pointerId); });
  timeline.addEventListener('pointerup', () => { dragged = null; });
  timeline.addEventListener('dblclick', () => { from = 0; to = last; drawTimeline(); });
  timeline.addEventListener('pointerleave', () => { element('timeline-tip').style.display = 'none'; });
  timeline.addEventListener('pointermove', (e) => {
    if (dragged) {
      const size = dragged.to - dragged.from;
      const shift = (dragged.x - e.clientX) / (timeline.clientWidth - left - 4) * size;
      from = Math.max(0, Math.min(last - size, dragged.from + shift));
      to = from + size;
      drawTimeline();
      return;
    }
    const event = eventAt(e.clientX), i = find(event);
    if (i < 0) return;
    const phase = data.phases.find((p) => at[i] >= p[1] && at[i] < p[2]);
    const lines = ['event ' + at[i] + (phase ? ' · ' + phase[0] : ''), data.names[ops[i]] || '(no operator)'];
    if (data.names[modules[i]]) lines.push(data.names[modules[i]]);
    lines.push(bytes(total(i)) + ' live');
    categories.forEach((name, c) => { if (live[i * width + c] > 0 && !hidden[c]) lines.push('  ' + name + ' ' + bytes(live[i * width + c])); });
    showTip(element('timeline-tip'), timeline, e, lines.join('\n'));
  });

  // --- the treemap ------------------------------------------------------------------------------------------
  // data.at_peak: bytes, category, module path, label of each storage.
  const root = { name: '(root)', path: [], size: 0, children: new Map() };
  for (const [size, category, path, label] of data.at_peak) {
    let node = root;
    node.size += size;
    for (const part of path === '' ? [] : path.split('.')) {
      if (!node.children.has(part)) node.children.set(part, { name: part, path: node.path.concat(part), size: 0, children: new Map() });
      node = node.children.get(part);
      node.size += size;
    }
    const key = '\u0000' + label + category;
    const known = node.children.get(key);
    if (known) { known.size += size; ++known.times; } else node.children.set(key, { name: label, leaf: true, category: category, path: node.path, size: size, times: 1 });
  }
  let inside = root;
  let boxes = [];

  // Squarified: rows of rectangles that are as square as can be (Bruls, Huizing, van Wijk 2000).
  function squarify(items, x, y, w, h, place) {
    items = items.slice().sort((a, b) => b.size - a.size);
    let sum = items.reduce((s, item) => s + item.size, 0);
    let i = 0;
    while (i < items.length && w > 0.5 && h > 0.5) {
      const side = Math.min(w, h), area = w * h / sum;
      let row = 0, j = i, worst = Infinity;
      for (; j < items.length; ++j) {
        const next = row + items[j].size, length = next * area / side;
        const a = items[i].size * area / length, b = items[j].size * area / length;
        const ratio = Math.max(a / length, length / a, b / length, length / b);
        if (ratio > worst) break;
        worst = ratio;
        row = next;
      }
      const length = row * area / side;
      let offset = 0;
      for (let k = i; k < j; ++k) {
        const extent = items[k].size * area / length;
        if (w >= h) place(items[k], x, y + offset, length, extent); else place(items[k], x + offset, y, extent, length);
        offset += extent;
      }
      if (w >= h) { x += length; w -= length; } else { y += length; h -= length; }
      sum -= row;
      i = j;
    }
  }

  function drawTreemap() {
    const [context, w, h] = prepare(element('treemap'));
    boxes = [];
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'top';
    const label = (text, x, y, width_, colour) => {
      if (width_ < 26) return;
      context.save();
      context.beginPath(); context.rect(x, y, width_ - 3, 14); context.clip();
      context.fillStyle = colour;
      context.fillText(text, x + 3, y + 2);
      context.restore();
    };
    const paint = (node, x, y, width_, height) => {
      boxes.push({ node: node, x: x, y: y, w: width_, h: height });
      if (node.leaf) {
        context.fillStyle = colours[node.category % colours.length];
        context.fillRect(x, y, Math.max(0, width_ - 1), Math.max(0, height - 1));
        if (height > 15) label(node.name, x, y, width_, '#10161c');
        return;
      }
      context.fillStyle = style('--back');
      context.fillRect(x, y, width_ - 1, height - 1);
      context.strokeStyle = style('--soft');
      context.strokeRect(x + 0.5, y + 0.5, Math.max(0, width_ - 2), Math.max(0, height - 2));
      const head = height > 32 && width_ > 30 ? 16 : 0;
      if (head) label(node.name + '  ' + bytes(node.size), x, y + 1, width_, style('--ink'));
      squarify([...node.children.values()], x + 2, y + head + 1, width_ - 5, height - head - 4, paint);
    };
    squarify([...inside.children.values()], 0, 0, w, h, paint);
    const crumbs = element('crumbs');
    crumbs.textContent = '';
    let node = root;
    const chain = [root];
    for (const part of inside.path) { node = node.children.get(part); chain.push(node); }
    chain.forEach((item, i) => {
      if (i > 0) crumbs.append(' › ');
      const link = document.createElement(i + 1 < chain.length ? 'a' : 'span');
      link.textContent = item.name;
      link.onclick = () => { inside = item; drawTreemap(); };
      crumbs.append(link);
    });
    crumbs.append('  ' + bytes(inside.size) + ' of ' + bytes(root.size));
  }
  const treemap = element('treemap');
  const boxAt = (e) => {
    const r = treemap.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    let best = null;
    for (const box of boxes) if (x >= box.x && y >= box.y && x < box.x + box.w && y < box.y + box.h) best = box;
    return best;
  };
  treemap.addEventListener('pointermove', (e) => {
    const box = boxAt(e);
    if (!box) return;
    const node = box.node, share = (100 * node.size / root.size).toFixed(1) + ' %';
    const where = node.path.join('.') || '(root)';
    showTip(element('treemap-tip'), treemap, e, (node.leaf ? node.name + (node.times > 1 ? ' ×' + node.times : '') + '\n' + categories[node.category] + ' of ' + where : where) + '\n' + bytes(node.size) + ', ' + share);
  });
  treemap.addEventListener('pointerleave', () => { element('treemap-tip').style.display = 'none'; });
  treemap.addEventListener('click', (e) => {
    const box = boxAt(e);
    if (!box) return;
    const path = box.node.path.slice(0, Math.max(inside.path.length + 1, 0));
    let node = root;
    for (const part of path) node = node.children.get(part) || node;
    if (node.children) { inside = node; drawTreemap(); }
  });

  // --- the tables -------------------------------------------------------------------------------------------
  // data.tables: {title, words: [...], columns: [[title, measure] …], rows: [[words…, figures…] …]}.
  let shownTable = 0, sortBy = -1, descending = true;
  const kMostRows = 2000;
  function drawTable() {
    const table = data.tables[shownTable], words = table.words.length;
    const needle = element('search').value.toLowerCase().split(/\s+/).filter((part) => part);
    let rows = table.rows;
    if (needle.length) rows = rows.filter((row) => { const text = row.slice(0, words).join(' ').toLowerCase(); return needle.every((part) => text.includes(part)); });
    if (sortBy >= 0) rows = rows.slice().sort((a, b) => { const x = a[sortBy], y = b[sortBy], order = typeof x === 'number' ? x - y : String(x).localeCompare(String(y)); return descending ? -order : order; });
    const head = document.createElement('tr');
    [...table.words, ...table.columns.map((c) => c[0])].forEach((title, i) => {
      const th = document.createElement('th');
      th.textContent = title + (i === sortBy ? (descending ? ' ▾' : ' ▴') : '');
      if (i < words) th.className = 'word';
      th.onclick = () => { descending = sortBy === i ? !descending : i >= words; sortBy = i; drawTable(); };
      head.append(th);
    });
    element('table').tHead.replaceChildren(head);
    const body = document.createDocumentFragment();
    for (const row of rows.slice(0, kMostRows)) {
      const tr = document.createElement('tr');
      row.forEach((value, i) => {
        const td = document.createElement('td');
        if (i < words) { td.className = 'word'; td.textContent = td.title = value; } else td.textContent = value === 0 ? '·' : shown[table.columns[i - words][1]](value);
        tr.append(td);
      });
      body.append(tr);
    }
    element('table').tBodies[0].replaceChildren(body);
    element('count').textContent = rows.length + ' of ' + table.rows.length + ' rows' + (rows.length > kMostRows ? ', the first ' + kMostRows + ' shown' : '');
  }
  function drawTabs() {
    element('tabs').textContent = '';
    data.tables.forEach((table, i) => {
      const button = document.createElement('button');
      button.textContent = table.title;
      button.className = i === shownTable ? 'on' : '';
      button.onclick = () => { shownTable = i; sortBy = -1; drawTabs(); drawTable(); };
      element('tabs').append(button);
    });
  }
  element('search').addEventListener('input', drawTable);

  function drawAll() { drawTimeline(); drawTreemap(); }
  drawLegend();
  drawTabs();
  drawTable();
  drawAll();
  window.addEventListener('resize', drawAll);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);

  // What was painted, for tests that look at the page: the colours of the canvases and their shares.
  function painted(canvas) {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, seen = new Map();
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] < 250) continue;
      const colour = '#' + [pixels[i], pixels[i + 1], pixels[i + 2]].map((v) => v.toString(16).padStart(2, '0')).join('');
      if (colours.includes(colour)) seen.set(colour, (seen.get(colour) || 0) + 1);
    }
    return [...seen].map(([colour, n]) => categories[colours.indexOf(colour)] + ':' + Math.round(1000 * n * 4 / pixels.length)).sort().join(' ');
  }
  document.body.dataset.timeline = painted(timeline);
  document.body.dataset.treemap = painted(treemap);
  document.body.dataset.changes = String(count);
  document.body.dataset.rows = String(element('table').tBodies[0].rows.length);
  document.body.dataset.ready = 'yes';
})();
