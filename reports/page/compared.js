// This run beside another one: two bars on one scale, and the figures that differ.

if (data.compared) {
  const rows = new Map(data.compared.rows.map(([figure, before, after]) => [figure, [before, after]]));
  const before = (figure, own) => (rows.has(figure) ? rows.get(figure)[0] || 0 : own);
  const own = { memory: 0, outside: 0, reserved: data.facts[1][2], live: data.room.live };
  const other = { memory: 0, outside: 0, reserved: before('peak.reserved_bytes', own.reserved), live: own.live.map((size, c) => before('peak.by_category.' + categories[c], size)) };
  element('compared').hidden = false;
  element('compared-options').textContent = data.compared.options.join(' · ') || 'the same options';
  const scale = Math.max(own.reserved, other.reserved, 1);
  element('compared-rooms').append(make('h3', '', data.compared.before), roomBar(other, scale), make('h3', '', 'this run'), roomBar(own, scale));

  // The totals, then kinds of memory, phases and modules that changed, the largest change first.
  const titles = { 'peak.allocated_bytes': 'allocated at most', 'peak.reserved_bytes': 'reserved at most', 'saved.bytes': 'kept for backward', 'parameters.bytes': 'parameters',
    'flops.forward': 'FLOPs, forward', 'flops.backward': 'FLOPs, backward', 'flops.recompute': 'FLOPs, recompute', 'flops.optimizer': 'FLOPs, optimizer' };
  const groups = [[/^peak\.by_category\.(.*)$/, (m) => kinds[categories.indexOf(m[1])] + ' at the peak'], [/^phases\.(.*)\.allocated_bytes\.peak$/, (m) => 'peak of ' + m[1].replace(/ (\d+)/, (_, n) => ' ' + (Number(n) + 1))], [/^modules\.(.*)\.saved_bytes$/, (m) => m[1] + ' keeps']];
  const lines = [];
  const line = (title, measure, [then, now]) => lines.push(make('tr', '', make('td', 'word name', title), make('td', 'lead', then === null ? '–' : shown[measure](then)), make('td', 'lead', now === null ? '–' : shown[measure](now)),
    make('td', (now || 0) > (then || 0) ? 'fails' : 'fits', ((now || 0) > (then || 0) ? '+' : '−') + shown[measure](Math.abs((now || 0) - (then || 0)))), make('td', '', then ? (100 * ((now || 0) - then) / then).toFixed(1) + ' %' : '')));
  for (const [figure, title] of Object.entries(titles)) if (rows.has(figure)) line(title, figure.startsWith('flops') ? 'flops' : 'bytes', rows.get(figure));
  for (const [pattern, title] of groups) {
    const found = [...rows].map(([figure, values]) => [figure.match(pattern), values]).filter(([match]) => match);
    found.sort((a, b) => Math.abs((b[1][1] || 0) - (b[1][0] || 0)) - Math.abs((a[1][1] || 0) - (a[1][0] || 0)));
    for (const [match, values] of found.slice(0, 8)) line(title(match), 'bytes', values);
  }
  if (!lines.length) lines.push(make('tr', '', make('td', 'word', 'no figure differs')));
  element('compared-table').append(headRow(['figure', data.compared.before, 'this run', 'change', ''], [0]), make('tbody', '', ...lines));
}
