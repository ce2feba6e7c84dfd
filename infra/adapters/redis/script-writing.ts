// How does the script write? At the end, a command or two for each key, whatever the size of the batch.

/** Used by script.ts behind the state. All texts are made before the first command: one that cannot be made leaves nothing half done. */
export const WRITING = `
local function toCounters(scope)
  local lines = {}
  for i, counter in ipairs(scope.windows) do
    checked(counter, 2 * MOST_SUM)
    local spent, held = shown(counter.spent), shown(counter.held)
    lines[i] = string.format('%d:%d %s %s %d', counter.first, counter.last, spent, held, counter.holds)
  end
  return lines[2] == nil and lines[1] or table.concat(lines, ';')
end
local function writeHash(key, put, gone)
  inPortions(put, function(...) redis.call('HSET', prefix .. key, ...) end)
  inPortions(gone, function(...) redis.call('HDEL', prefix .. key, ...) end)
end
local function writeRanks(key, members)
  local put, gone = {}, {}
  for id, score in pairs(members) do
    if score then
      put[#put + 1], put[#put + 2] = score, id
    else
      gone[#gone + 1] = id
    end
  end
  inPortions(put, function(...) redis.call('ZADD', prefix .. key, ...) end)
  inPortions(gone, function(...) redis.call('ZREM', prefix .. key, ...) end)
end
local function flush()
  local counters, empty, kept, gone, said, unsaid = {}, {}, {}, {}, {}, {}
  for _, scope in ipairs(touched) do
    if scope.windows[1] == nil then
      empty[#empty + 1] = scope.name
    else
      counters[#counters + 1], counters[#counters + 2] = scope.name, toCounters(scope)
    end
  end
  for _, id in ipairs(order) do
    local record = records[id]
    if record == false then
      gone[#gone + 1], unsaid[#unsaid + 1] = id, id
    else
      kept[#kept + 1], kept[#kept + 2] = id, record and toText(record) or texts[id]
    end
  end
  for id, note in pairs(notes) do
    if note then
      said[#said + 1], said[#said + 2] = id, note
    else
      unsaid[#unsaid + 1] = id
    end
  end
  writeHash('c', counters, empty)
  writeHash('h', kept, gone)
  writeHash('n', said, unsaid)
  writeRanks('l', leases)
  writeRanks('x', endings)
  writeRanks('w', edges)
  for name, ids in pairs(left) do inPortions(ids, function(...) redis.call('SREM', prefix .. 'b:' .. name, ...) end) end
  for name, ids in pairs(joined) do inPortions(ids, function(...) redis.call('SADD', prefix .. 'b:' .. name, ...) end) end
  if ratesOpen ~= nil then ratesOpen.flush() end
end
`;
