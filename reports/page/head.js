// The head of the page: the verdict, the bar against the device's memory, who holds the peak, what helps.

document.title = data.model + ' – metaprof';
element('title').textContent = data.model + ' on ' + data.device;
element('verdict').textContent = data.verdict;
element('verdict').className = data.fits ? 'fits' : 'fails';
element('answer').textContent = data.answer;
element('subtitle').textContent = [data.options, data.framework && 'PyTorch ' + data.framework].filter((text) => text).join(' · ');

// One bar: what is alive at the peak by category, what else the step reserves, what lies outside the allocator, and
// what stays free; a line where the device's memory ends. `scale`: bytes of the whole width.
function roomBar(room, scale) {
  const bar = make('div', 'room'), legend = make('div', 'legend');
  const alive = room.live.reduce((sum, n) => sum + n, 0);
  const part = (size, label, colour, className) => {
    if (size <= 0) return;
    const piece = make('div', 'piece ' + (className || ''));
    piece.style.width = 100 * size / scale + '%';
    if (colour) piece.style.background = colour;
    piece.title = label + ': ' + bytes(size);
    bar.append(piece);
    if (size < scale / 500) return;
    const swatch = make('i', className || '');
    if (colour) swatch.style.background = colour;
    legend.append(make('span', '', swatch, label + ' ' + bytes(size)));
  };
  room.live.forEach((size, c) => part(size, kinds[c], colours[c % colours.length]));
  part(room.reserved - alive, data.failed ? 'what it would go on to need' : 'rounding and cache', '', 'cache');
  part(room.outside, 'outside the allocator', '', 'outside');
  const needs = Math.max(room.reserved, alive) + room.outside;
  part(room.memory - needs, 'free', '', 'free');
  if (room.memory > 0 && needs > room.memory) {
    const end = make('div', 'end');
    end.style.left = 100 * room.memory / scale + '%';
    end.append(make('span', room.memory > scale / 2 ? 'left' : '', 'the device ends: ' + bytes(room.memory)));
    bar.append(end);
  }
  bar.setAttribute('role', 'img');
  bar.setAttribute('aria-label', bytes(needs) + (room.memory > 0 ? ' of ' + bytes(room.memory) : ''));
  return make('div', '', bar, legend);
}
const needed = (room) => Math.max(room.memory, room.reserved + room.outside);

{
  const room = data.room, needs = room.reserved + room.outside;
  const share = make('p', 'share', make('b', data.fits ? 'fits' : 'fails', (room.at_least ? 'more than ' : '') + percent(needs, room.memory)),
    ' of ' + bytes(room.memory) + (data.fits ? ': ' + bytes(room.memory - needs) + ' stay free' : ''));
  element('room').append(share, roomBar(room, needed(room)));
  for (const [label, measure, number] of data.facts)
    element('facts').append(make('div', 'fact', make('b', '', shown[measure](number)), make('span', '', label)));
}

// A cell with a bar behind its number.
function barCell(text, share, colour) {
  const cell = make('td', 'bar', text);
  const width_ = Math.max(0, Math.min(1, share)) * 100;
  if (width_ > 0) cell.style.backgroundImage = 'linear-gradient(to right, ' + (colour || 'var(--tint)') + ' ' + width_.toFixed(1) + '%, transparent 0)';
  return cell;
}
function headRow(titles, words) {
  return make('thead', '', make('tr', '', ...titles.map((title, i) => make('th', words.includes(i) ? 'word' : '', title))));
}

{
  const all = data.culprits.reduce((sum, row) => sum + row[0], 0), most = 9;
  const rows = data.culprits.slice(0, most).map(([size, what, line]) => make('tr', '', make('td', 'word', what + (line ? '\n' : ''), line ? make('span', 'line', line) : ''), barCell(bytes(size), size / all), make('td', '', percent(size, all))));
  const rest = data.culprits.slice(most).reduce((sum, row) => sum + row[0], 0);
  if (rest > 0) rows.push(make('tr', '', make('td', 'word', data.culprits.length - most + ' more'), barCell(bytes(rest), rest / all), make('td', '', percent(rest, all))));
  element('peak_contributors').append(headRow(['what', 'bytes', 'share'], [0]), make('tbody', '', ...rows));
}

if (data.advice.length) {
  element('advice-section').hidden = false;
  const [base, ...others] = data.advice;
  const change = (now, before) => (now === before || !before ? '' : (now > before ? '+' : '') + (100 * (now - before) / before).toFixed(0) + ' %');
  const row = ([words, , reserved, work, fits]) => make('tr', '', make('td', 'word', words), barCell(bytes(reserved), reserved / (1.05 * Math.max(...data.advice.map((r) => r[2])))),
    make('td', '', change(reserved, base[2])), make('td', '', change(work, base[3])), make('td', fits ? 'fits' : 'fails', fits ? 'fits' : 'no'));
  element('advice').append(headRow(['change', 'reserved', 'bytes', 'FLOPs', ''], [0]), make('tbody', '', row(base), ...others.map(row)));
}
