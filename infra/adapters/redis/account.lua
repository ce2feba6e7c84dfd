-- Accounts of an instance in Redis: every method of functions/core/ports/counter-store.ts as one atomic step (LEDGER 3
-- to 6).
-- By hand: redis-cli --eval infra/adapters/redis/account.lua '{instance}:meta' , accounts '{"isEnded":true,"max":10}'
--
-- KEYS[1] is `{instance}:meta`. Every key begins with `{instance}:`, so all share a slot:
--   meta            hash: layout, epoch, calls, now (the latest clock seen: a failover never turns it back), swept;
--                   account > `number state lease booked reported`: its last call, end of lease and batches, then the
--                   outcome of that call in JSON
--   c               hash: counter > `spent held`, then the last accounts that were refused here, each with the instant;
--                   spent is `-` while the counter is absent and registered reservations are in it
--   e               sorted set: loaded counter > until when it stays, used or not
--   l               sorted set: account > the end of its lease
--   f               sorted set: finished account > until when it is remembered
--   a:<account>     hash: counter > `escrow risk left`, then each unbooked batch with its spend; left: the last batch
--                   that was booked
--   r:<length>:<n>  hash: rate > use of each kind in the n-th window of this length, in JSON; the only keys that expire
--   p               hash: rate > requests in flight by account, in JSON
-- A counter is named `start:end scope id`. ARGV[1] names the operation, ARGV[2] has its arguments in JSON; the reply is
-- JSON, too; amounts are strings (account-text.ts). A step reads, decides, and writes last: one that fails at a wrong
-- argument has written nothing.
local LAYOUT, MINUTE, SECOND, KEEP, OLD, MAX_AHEAD = 'accounts 3', 60000, 1000, 60000, 100, 60000
-- Kinds of rates that count in windows, and the lengths of these: `npm run generate` from functions/core/ports/rates.ts.
local KINDS, WINDOWS = { 'requests', 'tokens' }, { requests = 60000, tokens = 60000 }
local MAX_ENDED, MAX_SWEPT, MAX_FORGOTTEN, MAX_FIELDS = 16, 100, 5000, 1000
local redisCall, match, format = redis.call, string.match, string.format
local prefix, operation, given = string.sub(KEYS[1], 1, -5), ARGV[1], cjson.decode(ARGV[2])
local meta = redisCall('HMGET', KEYS[1], 'layout', 'epoch', 'calls', 'now', 'swept', given.account or '')
if meta[1] ~= LAYOUT and (meta[1] or redisCall('EXISTS', prefix .. 'epoch') == 1) then
  return redis.error_reply('LAYOUT the store has the layout "' .. (meta[1] or 'holds') .. '" and this version reads "' .. LAYOUT
    .. '": stop all processes of the other version and delete the keys ' .. prefix .. '*')
end
local clock = redis.call('TIME')
local time = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
-- A clock that was ahead: leases and windows of that time would not end until the time has come. The store counts as
-- lost: the next epoch begins with what PostgreSQL has.
if tonumber(meta[4] or '0') > time + MAX_AHEAD then meta = { meta[1] } end
local now = math.max(time, tonumber(meta[4] or '0'))
local epoch = tonumber(meta[2] or '0')
-- A step that names an epoch does nothing in another one.
if given.epoch and operation ~= 'begin' and given.epoch ~= epoch then
  return cjson.encode({ outcome = 'epoch', now = now, epoch = epoch })
end
local COUNTERS, KEPT, LEASES, FINISHED, IN_FLIGHT = prefix .. 'c', prefix .. 'e', prefix .. 'l', prefix .. 'f', prefix .. 'p'
local function int(number) return format('%d', number) end
local function figuresKey(id) return prefix .. 'a:' .. id end
local nowText, minute = int(now), math.floor(now / MINUTE)
-- Use of rates in the window of this length that has begun last, and in the previous one.
local uses = {}
for _, length in pairs(WINDOWS) do
  local number = math.floor(now / length)
  local function key(n) return prefix .. 'r:' .. int(length) .. ':' .. int(n) end
  uses[length] = { number = number, present = key(number), before = key(number - 1) }
end

-- Money is never a rounded number. Doubles are exact while amounts stay below ten thousand dollars and sums below three
-- million: a step changes a sum by some hundred amounts. Else the step starts over with two parts of nine digits,
-- before anything is written.
local WIDE, BASE, MAX_AMOUNT, MAX_SUM, MAX_DOUBLE = 'wide', 1000000000, 1e13, 3e15, 9e15
local function upTo(max)
  return function(text)
    local number = tonumber(text)
    if not (number and number % 1 == 0 and number <= max and -max <= number) then error(WIDE, 0) end
    return number
  end
end
local NARROW = {
  amount = upTo(MAX_AMOUNT), sum = upTo(MAX_SUM), zero = 0,
  times = function(number, factor) return number * factor end,
  shown = function(number)
    if number > MAX_DOUBLE or number < -MAX_DOUBLE then error(WIDE, 0) end
    return int(number)
  end,
}
local function wideMoney()
  local parts = {}
  local function of(high, low) return setmetatable({ high + math.floor(low / BASE), low % BASE }, parts) end
  parts.__add = function(a, b) return of(a[1] + b[1], a[2] + b[2]) end
  parts.__sub = function(a, b) return of(a[1] - b[1], a[2] - b[2]) end
  parts.__lt = function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end
  parts.__le = function(a, b) return not (b < a) end
  parts.__eq = function(a, b) return a[1] == b[1] and a[2] == b[2] end
  local zero = of(0, 0)
  local function amount(text)
    local sign, digits = match(text, '^(%-?)(%d+)$')
    if digits == nil or #digits > 24 then error('not an amount: ' .. text, 0) end
    local size = of(tonumber(string.sub(digits, 1, -10)) or 0, tonumber(string.sub(digits, -9)))
    return sign == '' and size or zero - size
  end
  local function shown(a)
    if a < zero then return '-' .. shown(zero - a) end
    return a[1] == 0 and int(a[2]) or format('%d%09d', a[1], a[2])
  end
  return { amount = amount, sum = amount, zero = zero, shown = shown, times = function(a, factor) return of(a[1] * factor, a[2] * factor) end }
end

local function run(money)
local amount, sum, shown, ZERO = money.amount, money.sum, money.shown, money.zero
local calls = tonumber(meta[3] or '0')
local function min(a, b) return b < a and b or a end
local function max(a, b) return a < b and b or a end
local function size(text)
  local number = text and amount(text) or ZERO
  return ZERO <= number and number or error('not a size: ' .. text, 0)
end

-- Counters, accounts with their figures, and rates: read once, and written in the end where they have changed.
local counters, accounts, rates = {}, {}, {}
-- One command for many fields of a hash; `each` gets their texts, false where there is none.
local function read(key, names, each)
  for i = 0, #names - 1, MAX_FIELDS do
    local texts = redisCall('HMGET', key, unpack(names, i + 1, math.min(i + MAX_FIELDS, #names)))
    for at, text in ipairs(texts) do each(names[i + at], text, i + at) end
  end
end
-- An absent counter has no `spent`.
local function addCounter(name, text)
  if counters[name] then return end
  local spent, held, refused = match(text or '- 0', '^(%S+) (%S+)(.*)$')
  counters[name] = { name = name, spent = spent ~= '-' and sum(spent) or nil, held = sum(held), refused = refused, text = text or '- 0' }
end
local function windowOf(counter)
  local first, last = match(counter.name, '^(%-?%d+):(%-?%d+) ')
  return tonumber(first), tonumber(last) or error('not a counter: ' .. counter.name, 0)
end
local function counterOf(name)
  if counters[name] == nil then addCounter(name, redisCall('HGET', COUNTERS, name)) end
  return counters[name]
end
local function counterText(counter) return (counter.spent and shown(counter.spent) or '-') .. ' ' .. shown(counter.held) end
-- The accounts that were refused in the counter within the last second, without this one.
local function refusedIn(counter, except)
  if counter.refused == '' then return '' end
  local found = ''
  for id, at in string.gmatch(counter.refused, ' (%S+) (%d+)') do
    if id ~= except and now - tonumber(at) < SECOND then found = found .. ' ' .. id .. ' ' .. at end
  end
  return found
end

-- States: unknown, live, marked; closed by another or finished by itself: remembered for repeated and late calls, and
-- for audits.
local function accountOf(id)
  if accounts[id] == nil then
    local text = id == given.account and meta[6] or redisCall('HGET', KEYS[1], id) or '0 unknown 0 0 0 '
    local number, state, lease, booked, reported, outcome = match(text, '^(%d+) (%l+) (%d+) (%d+) (%d+) (.*)$')
    lease = tonumber(lease)
    accounts[id] = {
      id = id, number = tonumber(number), state = state, lease = lease, leaseBefore = lease, booked = tonumber(booked), reported = tonumber(reported),
      outcome = outcome, figures = {},
    }
  end
  return accounts[id]
end
local function addFigure(account, name, text)
  local figure = account.figures[name]
  if figure then return figure end
  local escrow, risk, left, batch, spend, more = match(text or '0 0 0', '^(%d+) (%d+) (%d+) ?(%d*) ?(%-?%d*)(.*)$')
  figure = { escrow = amount(escrow), risk = amount(risk), left = tonumber(left), unbooked = {}, text = text or '0 0 0' }
  while batch ~= '' do
    local number = tonumber(batch)
    if number > account.booked then figure.unbooked[#figure.unbooked + 1] = { batch = number, spend = amount(spend) }
    else figure.left = math.max(figure.left, number) end
    batch, spend, more = match(more, '^ ?(%d*) ?(%-?%d*)(.*)$')
  end
  account.figures[name] = figure
  return figure
end
-- At least the figures in these counters; all where that is less.
local function figuresOf(account, names)
  local key = figuresKey(account.id)
  if names and #names < redisCall('HLEN', key) then
    read(key, names, function(name, text) addFigure(account, name, text) end)
  else
    local fields = redisCall('HGETALL', key)
    for i = 1, #fields, 2 do addFigure(account, fields[i], fields[i + 1]) end
  end
  return account.figures
end
local function hasAnything(figure) return figure.escrow ~= ZERO or figure.risk ~= ZERO or figure.unbooked[1] ~= nil end
local function figureText(figure)
  local text = shown(figure.escrow) .. ' ' .. shown(figure.risk) .. ' ' .. int(figure.left)
  for _, one in ipairs(figure.unbooked) do text = text .. ' ' .. int(one.batch) .. ' ' .. shown(one.spend) end
  return text
end
local function write()
  local lists = { HSET = {}, HDEL = {}, ZADD = {}, ZREM = {} }
  local function later(command, key, one, other)
    local list = lists[command][key] or {}
    lists[command][key], list[#list + 1] = list, one
    list[#list + 1] = other
  end
  local function save(key, name, text, nothing) later(text == nothing and 'HDEL' or 'HSET', key, name, text ~= nothing and text or nil) end
  for name, counter in pairs(counters) do
    local text = (counter.shown or counterText(counter)) .. refusedIn(counter)
    if text ~= counter.text then save(COUNTERS, name, text, '- 0') end
    if counter.keptUntil then later('ZADD', KEPT, int(counter.keptUntil), name) end
  end
  for id, account in pairs(accounts) do
    for name, figure in pairs(account.figures) do
      local text = figure.shown or figureText(figure)
      if text ~= figure.text then save(figuresKey(id), name, text, '0 0 0') end
    end
    if account.isChanged then
      local lease = account.lease
      later('HSET', KEYS[1], id, format('%d %s %d %d %d %s', account.number, account.state, lease, account.booked, account.reported, account.outcome))
      later('ZADD', lease > 0 and LEASES or FINISHED, int(lease > 0 and lease or now + KEEP), id)
      if lease == 0 then later('ZREM', LEASES, id) end
    end
  end
  for id, rate in pairs(rates) do
    if rate.isChanged then
      for length, use in pairs(uses) do
        later('HSET', use.present, id, cjson.encode(rate.current[length]))
        later('HSET', use.before, id, cjson.encode(rate.before[length]))
      end
      save(IN_FLIGHT, id, cjson.encode(rate.inFlight), '{}')
    end
  end
  later('HSET', KEYS[1], 'calls', int(calls))
  later('HSET', KEYS[1], 'now', nowText)
  for command, keys in pairs(lists) do
    for key, list in pairs(keys) do
      for i = 1, #list, MAX_FIELDS do redisCall(command, key, unpack(list, i, math.min(i + MAX_FIELDS - 1, #list))) end
    end
  end
  for length, use in pairs(uses) do
    for _, key in ipairs({ use.present, use.before }) do
      if lists.HSET[key] then redisCall('PEXPIRE', key, int(2 * length)) end
    end
  end
end

-- Finished accounts are forgotten in the end, and counters whose window is over and that no account has anything in.
local function sweep()
  redisCall('HSET', KEYS[1], 'swept', nowText)
  local function due(set, most) return redisCall('ZRANGEBYSCORE', set, '-inf', nowText, 'LIMIT', '0', int(most)) end
  for _, id in ipairs(due(FINISHED, MAX_FORGOTTEN)) do
    redisCall('DEL', figuresKey(id))
    redisCall('HDEL', KEYS[1], id)
    redisCall('ZREM', FINISHED, id)
  end
  local names, used = due(KEPT, MAX_SWEPT), {}
  for _, id in ipairs(names[1] and redisCall('ZRANGE', LEASES, '0', '-1') or {}) do
    for name, figure in pairs(figuresOf(accountOf(id), names)) do used[name] = used[name] or hasAnything(figure) end
  end
  for _, name in ipairs(names) do
    if used[name] then redisCall('ZADD', KEPT, int(now + 10 * SECOND), name)
    else
      redisCall('HDEL', COUNTERS, name)
      redisCall('ZREM', KEPT, name)
      for id in pairs(accounts) do redisCall('HDEL', figuresKey(id), name) end
    end
  end
  accounts, meta[6] = {}, nil
end

-- An account ends: its escrow is free, and its risk is spend if PostgreSQL has charged it. An unknown one is known from
-- now on.
local function close(id, isCharged, state)
  local account = accountOf(id)
  if account.lease == 0 and account.state ~= 'unknown' then return end
  for name, figure in pairs(figuresOf(account)) do
    local counter = counterOf(name)
    counter.held, figure.escrow = counter.held - figure.escrow, ZERO
    if isCharged and counter.spent then counter.spent = counter.spent + figure.risk end
  end
  account.state, account.lease, account.isChanged = state, 0, true
end

-- Rates: the use of this window, and of the previous one by the share of it that lies in the last length, rounded down.
local function rateOf(id)
  if rates[id] == nil then
    local function read(hash) return cjson.decode(redisCall('HGET', hash, id) or '{}') end
    local rate = { current = {}, before = {}, inFlight = read(IN_FLIGHT) }
    for length, use in pairs(uses) do rate.current[length], rate.before[length] = read(use.present), read(use.before) end
    rates[id] = rate
  end
  return rates[id]
end
-- Use of a kind in the window that has begun last, and in the previous one.
local function countsOf(rate, kind)
  local length = WINDOWS[kind]
  return rate.current[length][kind] or 0, rate.before[length][kind] or 0, length
end
-- A request for more tokens than the limit has the whole of it to itself, once it is free.
local function wanted(limit, kind, tokens) return kind == 'requests' and 1 or math.min(tokens, limit.tokens) end
local function usedOf(rate, kind)
  local current, before, length = countsOf(rate, kind)
  return current + before - math.ceil(before * (now % length) / length)
end
-- A use changes the window of the minute that it names; one that no longer counts stays as it is.
local function addUse(rate, kind, by, at)
  local length = WINDOWS[kind]
  local number, last = math.floor(at * MINUTE / length), uses[length].number
  local counts = number == last and rate.current[length] or number == last - 1 and rate.before[length]
  if counts then counts[kind], rate.isChanged = math.max(0, (counts[kind] or 0) + by), true end
end
local function fly(rate, by)
  local own = (rate.inFlight[given.account] or 0) + by
  rate.inFlight[given.account], rate.isChanged = own > 0 and own or nil, true
end
local function inFlightOf(rate)
  local all = 0
  for id, count in pairs(rate.inFlight) do
    local account = accounts[id]
    local isThere = account and account.lease > 0 or not account and redisCall('ZSCORE', LEASES, id)
    if isThere then all = all + count else rate.inFlight[id] = nil end
  end
  return all
end
-- The time until no more than `most` is used.
local function untilUsed(rate, kind, most)
  if usedOf(rate, kind) <= most then return 0 end
  local current, before, length = countsOf(rate, kind)
  local function from(count, rest) return math.floor(length * (count - rest - 1) / count) + 1 end
  return (current > most and length + from(current, most) or from(before, most - current)) - now % length
end
-- The rate of a limit that keeps a request waiting longest. Clients ignore waits of more than a minute, and a limit of
-- 0 never has room.
local function waitOf(limit, tokens, index)
  local rate, longest = rateOf(limit.id), nil
  local function consider(kind, wait)
    if wait > (longest and longest.retryIn or 0) then longest = { outcome = 'limited', limit = index, rate = kind, retryIn = wait } end
  end
  for _, kind in ipairs(KINDS) do
    local most = limit[kind] and limit[kind] - wanted(limit, kind, tokens)
    if most then consider(kind, most < 0 and MINUTE or math.min(MINUTE, untilUsed(rate, kind, most))) end
  end
  if limit.parallel and inFlightOf(rate) >= limit.parallel then consider('parallel', SECOND) end
  return longest
end
-- The rate that refuses, and the first entry with room. Where none has, the one that has it first refuses.
local function judgeRates(asked)
  local longest, soonest
  for i, limit in ipairs(asked.limits) do
    local wait = waitOf(limit, asked.tokens, i - 1)
    if wait and wait.retryIn > (longest and longest.retryIn or 0) then longest = wait end
  end
  for i, entry in ipairs(asked.entries) do
    local wait = entry ~= cjson.null and waitOf(entry, asked.tokens, #asked.limits + i - 1)
    if not wait then return longest, i end
    if wait.retryIn < (soonest and soonest.retryIn or MINUTE + 1) then soonest = wait end
  end
  return soonest and soonest.retryIn > (longest and longest.retryIn or 0) and soonest or longest
end
local function takeRates(asked, chosen)
  local taken = { unpack(asked.limits) }
  if chosen and asked.entries[chosen] ~= cjson.null then taken[#taken + 1] = asked.entries[chosen] end
  for _, limit in ipairs(taken) do
    local rate = rateOf(limit.id)
    for _, kind in ipairs(KINDS) do
      if limit[kind] then addUse(rate, kind, wanted(limit, kind, asked.tokens), minute) end
    end
    if limit.parallel then fly(rate, 1) end
  end
end
local function leftOf(asked)
  local left = {}
  for i, limit in ipairs(asked.limits) do
    local rate = rateOf(limit.id)
    left[i] = {}
    for _, kind in ipairs(KINDS) do
      if limit[kind] then
        left[i][kind] = { remaining = math.max(0, limit[kind] - usedOf(rate, kind)), resetIn = untilUsed(rate, kind, 0) }
      end
    end
  end
  return left
end
local function use(used)
  local rate = rateOf(used.id)
  for _, kind in ipairs(KINDS) do addUse(rate, kind, used[kind], used.minute or minute) end
  fly(rate, used.parallel)
end

-- Lines of a call: { counter, limit or false, spend, risk, returned, registered, ahead }; 0 may be left out at the end.
local function readLines()
  local lines, names = {}, {}
  for i, of in ipairs(given.changes) do names[i] = of[1] end
  read(COUNTERS, names, addCounter)
  for i, of in ipairs(given.changes) do
    local ahead = size(of[7])
    lines[i] = {
      of = of, counter = counters[of[1]], limit = of[2] and sum(of[2]), spend = of[3] and amount(of[3]) or ZERO,
      ahead = ahead, isAsked = ZERO < ahead, admits = ZERO < ahead,
    }
  end
  for _, ask in ipairs(given.requests) do
    for i, index in ipairs(ask.counters) do
      local line = lines[index + 1]
      if line == nil or line.ask == ask then error('an ask must name different lines of its call', 0) end
      ask.counters[i], line.isAsked, line.ask, line.admits = line, true, ask, line.admits or not ask.isGrowth
    end
  end
  return lines, names
end
local function readFigures(account, lines, names)
  read(figuresKey(account.id), names, function(name, text, i) lines[i].figure = addFigure(account, name, text) end)
end
-- Why nothing is done.
local function obstacle(lines)
  local absent, isOver = {}, false
  for i, line in ipairs(lines) do
    if not line.counter.spent and (line.isAsked or line.spend ~= ZERO) then absent[#absent + 1] = i - 1 end
    -- Growth is in the window of its reservation. A scope without a limit has one window, its whole life, which may begin a
    -- moment ahead of this clock.
    if line.admits and line.limit and not isOver then
      local first, last = windowOf(line.counter)
      isOver = now < first or last <= now
    end
  end
  if absent[1] then return { outcome = 'absent', absent = absent } end
  return isOver and { outcome = 'window' } or nil
end
local function setAside(line, change) line.figure.escrow, line.counter.held = line.figure.escrow + change, line.counter.held + change end
-- Spend leaves escrow, as far as there is any; idle escrow goes back; live reservations are held again.
local function settle(line, account)
  local of, counter, figure = line.of, line.counter, line.figure
  setAside(line, size(of[6]) - min(figure.escrow, max(ZERO, line.spend) + size(of[5])))
  figure.risk = size(of[4])
  if line.spend == ZERO then return end
  local last = figure.unbooked[#figure.unbooked]
  if last and last.batch == given.batch then last.spend = last.spend + line.spend
  else figure.unbooked[#figure.unbooked + 1] = { batch = given.batch, spend = line.spend } end
  counter.spent, account.reported = counter.spent + line.spend, math.max(account.reported, given.batch)
end
-- The size that spend leaves of an ask; else the refusal.
local function clamp(ask)
  local granted = size(ask.amount)
  local least = min(granted, size(ask.minAmount))
  for i, line in ipairs(ask.counters) do
    local rest = line.limit and line.limit - line.counter.spent
    if rest and (rest <= ZERO or rest < least) then return nil, { outcome = 'exceeded', counter = i - 1, spent = shown(line.counter.spent) } end
    granted = rest and min(granted, rest) or granted
  end
  return granted
end
-- All of an ask or nothing. Spend takes precedence over a rate, a rate over escrow.
local function decide(ask, account)
  local granted, refusal = clamp(ask)
  local limited, chosen
  if granted and ask.rates then limited, chosen = judgeRates(ask.rates) end
  if refusal or limited then return refusal or limited end
  for i, line in ipairs(ask.counters) do
    local counter = line.counter
    if line.limit and ZERO < granted and line.limit < counter.spent + counter.held + granted then
      refusal = refusal or { outcome = 'busy', counter = i - 1 }
      -- Two accounts are enough to know whether another one than any was refused.
      counter.refused = ' ' .. account.id .. ' ' .. nowText .. (match(refusedIn(counter, account.id), '^ %S+ %d+') or '')
    end
  end
  if refusal then return refusal end
  for _, line in ipairs(ask.counters) do
    if line.limit then setAside(line, granted) end
    line.figure.risk = line.figure.risk + granted
  end
  if ask.rates then takeRates(ask.rates, chosen) end
  return { outcome = 'reserved', amount = shown(granted) }, chosen and chosen - 1
end
local function answer(ask, account)
  if given.deadline < now then return { outcome = 'late' } end
  local reply, entry = decide(ask, account)
  reply.rates = ask.rates and { entry = entry, minute = minute, left = leftOf(ask.rates) }
  for _, line in ipairs(ask.counters) do
    line.isRefused = line.isRefused or reply.outcome == 'exceeded' or reply.outcome == 'busy'
  end
  return reply
end
local function liveAccounts()
  local live = redisCall('ZCOUNT', LEASES, '(' .. nowText, '+inf')
  for _, account in pairs(accounts) do
    live = live + (account.lease > now and 1 or 0) - (account.leaseBefore > now and 1 or 0)
  end
  return live
end
-- Escrow ahead of requests: a sixteenth of what is left, divided among the live accounts, and none where anybody is
-- refused.
local function grantAhead(lines)
  local share
  for _, line in ipairs(lines) do
    local counter = line.counter
    if line.ahead ~= ZERO and line.limit and not line.isRefused and refusedIn(counter) == '' then
      share = share or 16 * liveAccounts()
      if money.times(line.ahead, share) <= line.limit - counter.spent - counter.held then setAside(line, line.ahead) end
    end
  end
end
local function perform(account, lines, names)
  account.booked = math.max(account.booked, given.bookedBatch)
  readFigures(account, lines, names)
  for _, line in ipairs(lines) do settle(line, account) end
  for _, id in ipairs(given.previousAccounts) do close(id, true, 'closed') end
  for _, used in ipairs(given.rateChanges) do use(used) end
  local asks = {}
  for i, ask in ipairs(given.requests) do asks[i] = answer(ask, account) end
  if now <= given.deadline then grantAhead(lines) end
  if given.isLast then close(account.id, false, 'finished') end
  return { outcome = 'done', replies = asks }
end

local operations = {}
function operations.call()
  local account, number = accountOf(given.account), given.number
  local state, isLate = account.state, number == 1 and given.deadline < now
  local isRepeated = number == account.number and (state == 'live' or state == 'finished')
  if not isRepeated then
    local isClosed = number <= account.number or (state ~= 'live' and state ~= 'unknown') or (state == 'unknown' and isLate)
    local why = isClosed and 'closed' or number > account.number + 1 and 'behind'
    if why then return { outcome = 'stale', why = why, now = now, calls = calls } end
  end
  local lines, names = readLines()
  if not isRepeated then
    calls = calls + 1
    account.number, account.state, account.lease, account.isChanged = number, 'live', now + given.lease, true
    account.outcome = cjson.encode(obstacle(lines) or perform(account, lines, names))
  end
  local isDone, reply = string.find(account.outcome, '"done"', 1, true), { now = now, calls = calls }
  if isDone then
    local states, ended = {}, {}
    if isRepeated then readFigures(account, lines, names) end
    for i, line in ipairs(lines) do
      local counter, figure = line.counter, line.figure
      counter.shown, figure.shown = counterText(counter), figureText(figure)
      states[i] = { counter.shown, figure.shown, refusedIn(counter, account.id) ~= '' }
    end
    for _, id in ipairs(redisCall('ZRANGEBYSCORE', LEASES, '-inf', nowText, 'LIMIT', '0', int(MAX_ENDED))) do
      if id ~= account.id and not (accounts[id] and accounts[id].lease == 0) then ended[#ended + 1] = id end
    end
    reply.liveAccounts, reply.counters, reply.endedAccounts = liveAccounts(), states, ended
  end
  write()
  -- The outcome is JSON already.
  return string.sub(account.outcome, 1, -2) .. ',' .. string.sub(cjson.encode(reply), 2)
end

function operations.freeze()
  local account = accountOf(given.account)
  if account.lease == 0 then
    close(given.account, false, 'closed')
    calls = calls + 1
    write()
    return { outcome = 'none', now = now, calls = calls }
  end
  if not given.isOwn and account.lease > now then return { outcome = 'live', now = now } end
  local absent, figures = {}, {}
  for name, figure in pairs(figuresOf(account)) do
    if hasAnything(figure) then
      local unbooked = {}
      for i, one in ipairs(figure.unbooked) do unbooked[i] = { batch = one.batch, spend = shown(one.spend) } end
      figures[#figures + 1] = { counter = name, escrow = shown(figure.escrow), risk = shown(figure.risk), unbooked = unbooked }
      if not counterOf(name).spent then absent[#absent + 1] = name end
    end
  end
  if absent[1] and not given.isRebuild then return { outcome = 'absent', now = now, counters = absent } end
  account.state, account.isChanged, calls = 'frozen', true, calls + 1
  write()
  return { outcome = 'frozen', now = now, calls = calls, number = account.number, figures = figures }
end

function operations.forget()
  local state = accountOf(given.account).state
  if state == 'frozen' or state == 'unknown' then close(given.account, given.isCharged, 'closed') end
  write()
  return {}
end

function operations.load()
  for _, of in ipairs(given.sums) do
    local counter, spent = counterOf(of[1]), sum(of[2])
    if counter.spent == nil then counter.spent, counter.keptUntil = spent, math.max(now, select(2, windowOf(counter))) + KEEP end
  end
  write()
  return {}
end

function operations.read()
  local states = {}
  for i, name in ipairs(given.counters) do
    local counter = counterOf(name)
    states[i] = counter.spent and { shown(counter.spent), shown(counter.held) } or false
  end
  return states
end

function operations.accounts()
  local all = {}
  for i, id in ipairs(redisCall('ZRANGEBYSCORE', LEASES, '-inf', given.isEnded and nowText or '+inf', 'LIMIT', '0', int(given.max))) do
    local account = accountOf(id)
    all[i] = { account = id, number = account.number, unbooked = account.reported > account.booked and account.reported or 0 }
  end
  return { accounts = all }
end

-- From the end: counters that leave are the first ones.
function operations.loaded()
  local names = redisCall('ZREVRANGE', KEPT, int(given.from), int(given.from + given.max))
  local next = names[given.max + 1] and given.from + given.max
  names[given.max + 1] = nil
  return { counters = names, next = next }
end

-- Adds to the sums what an account has reported and PostgreSQL has not booked, by the row that was read before them.
-- Whether it has moved since.
local function auditAccount(account, row, expected)
  local isOver, isMoved = account.lease == 0, false
  for name, figure in pairs(account.figures) do
    local hasSpend = figure.risk ~= ZERO or figure.unbooked[1] ~= nil
    if expected[name] == nil then hasSpend = false
    elseif row == nil then isMoved = isMoved or hasSpend or figure.left > 0
    elseif row.isClosed then
      if row.isCharged and not isOver then expected[name] = expected[name] - figure.risk end
    elseif figure.left > row.bookedBatch or (isOver and hasSpend) then isMoved = true
    else
      for _, one in ipairs(figure.unbooked) do
        if one.batch > row.bookedBatch then expected[name] = expected[name] + one.spend end
      end
      -- No audit is under way that read so old a row.
      if figure.left + OLD < row.bookedBatch then figure.left = 0 end
    end
  end
  return isMoved
end
function operations.audit()
  local names, expected, differences, moved, ids = {}, {}, {}, {}, redisCall('ZRANGE', LEASES, '0', '-1')
  for _, id in ipairs(redisCall('ZRANGE', FINISHED, '0', '-1')) do ids[#ids + 1] = id end
  -- So many unbooked amounts might not be exact as doubles.
  if #ids > 200 and money == NARROW then error(WIDE, 0) end
  for i, of in ipairs(given.deadline < now and {} or given.sums) do
    names[i] = of[1]
    if counterOf(of[1]).spent then expected[of[1]] = sum(of[2]) end
  end
  for _, id in ipairs(names[1] and ids or {}) do
    local account = accountOf(id)
    figuresOf(account, names)
    if auditAccount(account, given.rows[id], expected) then moved[#moved + 1] = id end
  end
  for name, spent in pairs(moved[1] and {} or expected) do
    local counter = counterOf(name)
    if spent ~= counter.spent then differences[#differences + 1] = { counter = name, by = shown(spent - counter.spent) } end
    counter.spent = spent
  end
  if not moved[1] then
    calls = calls + 1
    write()
  end
  return { outcome = 'done', now = now, calls = calls, differences = differences, changedAccounts = moved }
end

local function wipe()
  for _, id in ipairs(redisCall('HKEYS', KEYS[1])) do redisCall('UNLINK', figuresKey(id)) end
  for _, name in ipairs({ COUNTERS, KEPT, LEASES, FINISHED, IN_FLIGHT, KEYS[1] }) do redisCall('UNLINK', name) end
  for _, use in pairs(uses) do redisCall('UNLINK', use.present, use.before) end
end
function operations.begin()
  if given.epoch <= epoch then return { epoch = epoch } end
  wipe()
  redisCall('HSET', KEYS[1], 'layout', LAYOUT, 'epoch', int(given.epoch), 'now', nowText)
  return { epoch = given.epoch }
end
function operations.clear()
  wipe()
  return {}
end

if meta[1] and tonumber(meta[5] or '0') + SECOND <= now then sweep() end
return operations[operation]()
end

local isDone, answer = pcall(run, NARROW)
if not isDone and answer == WIDE then
  given = cjson.decode(ARGV[2])
  isDone, answer = pcall(run, wideMoney())
end
-- Errors keep the server's text: clients recognise a replica by its first word.
if not isDone then return { err = type(answer) == 'table' and answer.err or answer } end
return type(answer) == 'string' and answer or cjson.encode(answer)
