// Writes of the script: at the end, one or two commands per key, whatever the size of the batch.

/** Used by script.ts after the state. All texts are made before the first command: an error leaves nothing half written. */
export const WRITES = `
local function write(command, key, words)
  local count = #words
  if count == 0 then return end
  if count <= PORTION then return redis.call(command, prefix .. key, unpack(words)) end
  for from = 1, count, PORTION do
    redis.call(command, prefix .. key, unpack(words, from, math.min(from + PORTION - 1, count)))
  end
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
  write('ZADD', key, put)
  write('ZREM', key, gone)
end
local function flush()
  local counters, empty, kept, gone, said, unsaid = {}, {}, {}, {}, {}, {}
  for _, scope in ipairs(touched) do
    local text
    for _, counter in ipairs(scope.counters) do text = (text and text .. ';' or '') .. lineOf(counter) end
    if text == nil then
      empty[#empty + 1] = scope.name
    else
      counters[#counters + 1], counters[#counters + 2] = scope.name, text
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
  write('HSET', 'c', counters)
  write('HDEL', 'c', empty)
  write('HSET', 'h', kept)
  write('HDEL', 'h', gone)
  write('HSET', 'n', said)
  write('HDEL', 'n', unsaid)
  writeRanks('l', leases)
  writeRanks('x', endings)
  writeRanks('w', edges)
  for name, ids in pairs(left) do write('SREM', 'b:' .. name, ids) end
  for name, ids in pairs(joined) do write('SADD', 'b:' .. name, ids) end
  if ratesOpen ~= nil then ratesOpen.flush() end
end
`;
