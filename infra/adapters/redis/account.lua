-- Accounts of an instance in Redis: every method of functions/core/ports/counter-store.ts as one atomic step (LEDGER 3
-- to 6).
-- By hand: redis-cli --eval infra/adapters/redis/account.lua '{instance}:meta' , accounts '{"isEnded":true,"max":10}'
--
-- KEYS[1] is `{instance}:meta`. Every key begins with `{instance}:`, so all share a slot:
--   meta            hash: layout, epoch, storeCalls, now (the latest time seen: a failover never turns it back),
--                   cleanedAt, countersCleanedAt (with its pause), lastCall; lastBeforeSilence, firstAfterSilence: the times of the
--                   last call before a silence of all processes, and of the first call after it;
--                   account > `callNumber state leaseEnd bookedBatch reportedBatch`: the number of its last call, its state, the end of
--                   its lease (0: finished), its last booked and reported batch; then the outcome of that call in JSON
--   c COUNTERS      hash: counter > `spent escrowOfAll`, then the accounts that were last refused because of escrow, each with
--                   the time; spent is `-` while the counter is absent and accounts have figures in it
--   e LOADED        sorted set: loaded counter > the time until which it is kept although no account uses it
--   l LEASES        sorted set: account > the end of its lease
--   f FINISHED      sorted set: finished account > the time until which it is remembered
--   u AUDITED       sorted set: account that audits read > infinite while it is frozen or has spend that is not booked;
--                   else the value of storeCalls after its last booking or its end
--   a:<account>     figuresKey; hash: counter > `escrow risk lastBookedBatch`, then each unbooked batch with its spend; lastBookedBatch: the
--                   last batch with spend in this counter that was booked
--   o:<account>     forgottenKey; hash: the same for figures that are forgotten, which only audits read
--   r:<length>:<n>  uses; hash: rate > use of each kind in the n-th window of this length, in JSON; only these keys expire
--   p IN_FLIGHT     hash: rate > requests in flight of all accounts
--   i:<account>     inFlightKey; sorted set: rate > requests in flight of the account
-- The name of a counter is `start:end scope id`. ARGV[1] names the operation, ARGV[2] has its arguments in JSON. The reply
-- is JSON too. Amounts are strings (account-text.ts). A step reads, decides, and then writes: a step that fails because of
-- a wrong argument has written nothing. No step reads or writes all figures of an account: it may have 100,000.
-- On Workers each request is an account. So no step reads all accounts with requests in flight, except that counters are
-- dropped now and then, and an audit reads at most `MAX_AUDITED` accounts.
local LAYOUT, MINUTE, SECOND = 'accounts 7', 60000, 1000
-- Milliseconds for which a finished account, or a counter after its window, is kept.
local KEEP = 60000
-- Batches after which an audit no longer needs the last booked batch of a counter.
local OLD_BATCHES = 100
-- Milliseconds by which the latest time seen may be ahead of this server's clock.
local MAX_AHEAD = 60000
-- Kinds of rates that count in windows, the lengths of these, and the kinds of which a request names an estimate:
-- `npm run generate` from functions/core/ports/rates.ts.
local KINDS, WINDOWS, IS_ESTIMATED = { 'requests', 'tokens' }, { requests = 60000, tokens = 60000 }, { tokens = true }
-- No call for this long means that the store may have been away: each process on Node calls at least every two seconds.
-- Leases that ended meanwhile end only `GRACE` after the next call of any process, so that their processes can renew them.
-- On Workers nobody may have called; there this only delays the end of leases.
local MAX_CALL_GAP, GRACE = 5000, 3000
local MAX_ENDED, MAX_REMOVED, MAX_FIELDS, FIGURES_PAGE, MAX_AUDITED = 16, 5000, 1000, 500, 500
-- Counters whose window is over are dropped once a second, or after `SOON` milliseconds if more than `FEW_DUE` are due.
-- After each drop there is also a pause, which is longer if more was read. To read 1,000 live accounts takes about 20
-- milliseconds, a twentieth of their pause; to read 20,000 of their figures takes about 40, half of their pause.
local FEW_DUE, SOON, ACCOUNTS_PER_MILLI, FIGURES_PER_MILLI = 100, 100, 2.5, 250
-- The maximum figures of all live accounts that one step reads to drop counters; ten of each account cost as much as the
-- account itself.
local MAX_FIGURES, FIGURES_PER_ACCOUNT = 20000, 10
-- The maximum number of rates whose requests in flight one step ends.
local RATES_PAGE = 2000
local redisCall, match, format = redis.call, string.match, string.format
local prefix, operation, input = string.sub(KEYS[1], 1, -5), ARGV[1], cjson.decode(ARGV[2])
local meta = redisCall('HMGET', KEYS[1], 'layout', 'epoch', 'storeCalls', 'now', 'cleanedAt', input.account or '', 'lastCall',
  'lastBeforeSilence', 'firstAfterSilence', 'countersCleanedAt')
-- While the slot moves to another node of a Cluster, keys are on both. The node then refuses to look for a key that it
-- lacks, so this fails before anything is written: only another layout has this key.
local hasOtherLayout = redisCall('EXISTS', prefix .. 'epoch') == 1
if meta[1] ~= LAYOUT and (meta[1] or hasOtherLayout) then
  return redis.error_reply('LAYOUT the store has the layout "' .. (meta[1] or 'unknown') .. '" and this version reads "' .. LAYOUT
    .. '": stop all processes of the other version and delete the keys ' .. prefix .. '*')
end
local clock = redis.call('TIME')
local time = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
-- The clock was ahead before. Leases and windows from that time would last too long, by as much as it was ahead. So the
-- store counts as lost, and the next epoch begins with the sums of PostgreSQL.
if tonumber(meta[4] or '0') > time + MAX_AHEAD then meta = { meta[1] } end
local now = math.max(time, tonumber(meta[4] or '0'))
local epoch = tonumber(meta[2] or '0')
-- A step that names an epoch does nothing in another epoch.
if input.epoch and operation ~= 'begin' and input.epoch ~= epoch then
  return cjson.encode({ outcome = 'epoch', now = now, epoch = epoch })
end
local COUNTERS, LOADED, LEASES, FINISHED, IN_FLIGHT = prefix .. 'c', prefix .. 'e', prefix .. 'l', prefix .. 'f', prefix .. 'p'
local AUDITED = prefix .. 'u'
local function int(number) return format('%d', number) end
local function figuresKey(id) return prefix .. 'a:' .. id end
local function forgottenKey(id) return prefix .. 'o:' .. id end
local function inFlightKey(id) return prefix .. 'i:' .. id end
local nowText, minute = int(now), math.floor(now / MINUTE)
local lastCall = tonumber(meta[7] or '0')
local lastBeforeSilence, firstAfterSilence = tonumber(meta[8] or '0'), tonumber(meta[9] or '0')
local function recordCall()
  if lastCall > 0 and lastCall + MAX_CALL_GAP < now then lastBeforeSilence, firstAfterSilence = lastCall, now end
  lastCall = now
end
-- Leases that end at this time or before have ended.
local function endedUntil() return now < firstAfterSilence + GRACE and lastBeforeSilence or now end
-- The use of rates in the current window of each length, and in the previous window.
local uses = {}
for _, length in pairs(WINDOWS) do
  local number = math.floor(now / length)
  local function key(n) return prefix .. 'r:' .. int(length) .. ':' .. int(n) end
  uses[length] = { number = number, present = key(number), before = key(number - 1) }
end

-- Money is never a rounded number. Doubles are exact while amounts stay below ten thousand dollars and sums below three
-- million: a step changes a sum by some hundred amounts. With larger numbers the step is repeated with two parts of nine
-- digits, before anything is written.
local WIDE, BASE, MAX_AMOUNT, MAX_SUM, MAX_DOUBLE = 'wide', 1000000000, 1e13, 3e15, 9e15
local function upTo(max)
  return function(text)
    local number = tonumber(text)
    if not (number and number % 1 == 0 and number <= max and -max <= number) then error(WIDE, 0) end
    return number
  end
end
local NARROW = {
  toAmount = upTo(MAX_AMOUNT), toSum = upTo(MAX_SUM), zero = 0,
  times = function(number, factor) return number * factor end,
  textOf = function(number)
    if number > MAX_DOUBLE or number < -MAX_DOUBLE then error(WIDE, 0) end
    return int(number)
  end,
}
local function wideMoney()
  local parts = {}
  local function wide(high, low) return setmetatable({ high + math.floor(low / BASE), low % BASE }, parts) end
  parts.__add = function(a, b) return wide(a[1] + b[1], a[2] + b[2]) end
  parts.__sub = function(a, b) return wide(a[1] - b[1], a[2] - b[2]) end
  parts.__lt = function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end
  parts.__le = function(a, b) return not (b < a) end
  parts.__eq = function(a, b) return a[1] == b[1] and a[2] == b[2] end
  local zero = wide(0, 0)
  local function toAmount(text)
    local sign, digits = match(text, '^(%-?)(%d+)$')
    if digits == nil or #digits > 24 then error('not an amount: ' .. text, 0) end
    local size = wide(tonumber(string.sub(digits, 1, -10)) or 0, tonumber(string.sub(digits, -9)))
    return sign == '' and size or zero - size
  end
  local function textOf(a)
    if a < zero then return '-' .. textOf(zero - a) end
    return a[1] == 0 and int(a[2]) or format('%d%09d', a[1], a[2])
  end
  local function times(a, factor) return wide(a[1] * factor, a[2] * factor) end
  return { toAmount = toAmount, toSum = toAmount, zero = zero, textOf = textOf, times = times }
end

local function run(money)
local toAmount, toSum, textOf, ZERO = money.toAmount, money.toSum, money.textOf, money.zero
local storeCalls = tonumber(meta[3] or '0')
local function min(a, b) return b < a and b or a end
local function max(a, b) return a < b and b or a end
local function toSize(text)
  local number = text and toAmount(text) or ZERO
  return ZERO <= number and number or error('not a size: ' .. text, 0)
end

-- Counters, accounts with their figures, rates, and the requests in flight of each rate: read once, and written at the
-- end if they have changed.
local counters, accounts, rates, inFlights = {}, {}, {}, {}
-- Reads many fields of a hash with one command; `each` gets the text of each field, false if there is none.
local function readFields(key, names, each)
  for i = 0, #names - 1, MAX_FIELDS do
    local texts = redisCall('HMGET', key, unpack(names, i + 1, math.min(i + MAX_FIELDS, #names)))
    for at, text in ipairs(texts) do each(names[i + at], text, i + at) end
  end
end
-- An absent counter has no `spent`.
local function addCounter(name, text)
  if counters[name] then return end
  local spent, escrowOfAll, refusals = match(text or '- 0', '^(%S+) (%S+)(.*)$')
  counters[name] = { name = name, spent = spent ~= '-' and toSum(spent) or nil, escrowOfAll = toSum(escrowOfAll), refusals = refusals, text = text or '- 0' }
end
local function windowOf(counter)
  local start, finish = match(counter.name, '^(%-?%d+):(%-?%d+) ')
  return tonumber(start), tonumber(finish) or error('not a counter: ' .. counter.name, 0)
end
local function counterOf(name)
  if counters[name] == nil then addCounter(name, redisCall('HGET', COUNTERS, name)) end
  return counters[name]
end
local function counterText(counter) return (counter.spent and textOf(counter.spent) or '-') .. ' ' .. textOf(counter.escrowOfAll) end
-- The accounts that were refused in the counter within the last second, except one account.
local function refusalsIn(counter, except)
  if counter.refusals == '' then return '' end
  local others = ''
  for id, at in string.gmatch(counter.refusals, ' (%S+) (%d+)') do
    if id ~= except and now - tonumber(at) < SECOND then others = others .. ' ' .. id .. ' ' .. at end
  end
  return others
end

-- Whether audits read the account whenever PostgreSQL is read.
local function mustBeAudited(account)
  return account.leaseEnd > 0 and (account.state == 'frozen' or account.bookedBatch < account.reportedBatch)
end
-- States: unknown, live, frozen, and two states of a finished account: `finished` by its own last call, which may be
-- repeated, or `forgotten` by `forget`. Its id is kept for repeated and late calls, and for audits.
local function accountOf(id)
  if accounts[id] == nil then
    local text = id == input.account and meta[6] or redisCall('HGET', KEYS[1], id) or '0 unknown 0 0 0 '
    local callNumber, state, leaseEnd, booked, reported, outcome = match(text, '^(%d+) (%l+) (%d+) (%d+) (%d+) (.*)$')
    leaseEnd = tonumber(leaseEnd)
    accounts[id] = {
      id = id, callNumber = tonumber(callNumber), state = state, leaseEnd = leaseEnd, leaseEndBefore = leaseEnd, bookedBatch = tonumber(booked),
      reportedBatch = tonumber(reported),
      outcome = outcome, figures = {},
    }
    accounts[id].bookedBatchBefore, accounts[id].wasAudited = accounts[id].bookedBatch, mustBeAudited(accounts[id])
  end
  return accounts[id]
end
local function addFigure(account, name, text, isForgotten)
  local figure = account.figures[name]
  if figure then return figure end
  local escrow, risk, booked, batch, spend, more = match(text or '0 0 0', '^(%d+) (%d+) (%d+) ?(%d*) ?(%-?%d*)(.*)$')
  figure = { escrow = toAmount(escrow), risk = toAmount(risk), lastBookedBatch = tonumber(booked), unbookedSpend = {}, text = text or '0 0 0' }
  figure.isForgotten, figure.wasForgotten = isForgotten, isForgotten
  while batch ~= '' do
    local number = tonumber(batch)
    if number > account.bookedBatch then figure.unbookedSpend[#figure.unbookedSpend + 1] = { batch = number, spend = toAmount(spend) }
    else figure.lastBookedBatch = math.max(figure.lastBookedBatch, number) end
    batch, spend, more = match(more, '^ ?(%d*) ?(%-?%d*)(.*)$')
  end
  account.figures[name] = figure
  return figure
end
-- Calls `each` with at least the fields of these names; with all fields if there are fewer.
local function readSome(key, names, each)
  if #names < redisCall('HLEN', key) then return readFields(key, names, each) end
  local fields = redisCall('HGETALL', key)
  for i = 1, #fields, 2 do each(fields[i], fields[i + 1]) end
end
local function figuresOf(account, names)
  readSome(figuresKey(account.id), names, function(name, text) addFigure(account, name, text) end)
  return account.figures
end
local function hasFigures(figure) return figure.escrow ~= ZERO or figure.risk ~= ZERO or figure.unbookedSpend[1] ~= nil end
local function figureText(figure)
  local text = textOf(figure.escrow) .. ' ' .. textOf(figure.risk) .. ' ' .. int(figure.lastBookedBatch)
  for _, part in ipairs(figure.unbookedSpend) do text = text .. ' ' .. int(part.batch) .. ' ' .. textOf(part.spend) end
  return text
end
local function write()
  local lists = { HSET = {}, HDEL = {}, ZADD = {}, ZREM = {} }
  local function add(command, key, member, value)
    local list = lists[command][key] or {}
    lists[command][key], list[#list + 1] = list, member
    list[#list + 1] = value
  end
  local function save(key, name, text, empty) add(text == empty and 'HDEL' or 'HSET', key, name, text ~= empty and text or nil) end
  for name, counter in pairs(counters) do
    local text = (counter.newText or counterText(counter)) .. refusalsIn(counter)
    if text ~= counter.text then save(COUNTERS, name, text, '- 0') end
    if counter.keptUntil then add('ZADD', LOADED, int(counter.keptUntil), name) end
  end
  for id, account in pairs(accounts) do
    for name, figure in pairs(account.figures) do
      local text = figure.newText or figureText(figure)
      local isMoved = figure.isForgotten and not figure.wasForgotten
      if isMoved then add('HDEL', figuresKey(id), name) end
      if isMoved or text ~= figure.text then save((figure.isForgotten and forgottenKey or figuresKey)(id), name, text, '0 0 0') end
    end
    if account.isChanged then
      local leaseEnd = account.leaseEnd
      add('HSET', KEYS[1], id, format('%d %s %d %d %d %s', account.callNumber, account.state, leaseEnd, account.bookedBatch, account.reportedBatch, account.outcome))
      add('ZADD', leaseEnd > 0 and LEASES or FINISHED, int(leaseEnd > 0 and leaseEnd or now + KEEP), id)
      if leaseEnd == 0 then add('ZREM', LEASES, id) end
      if mustBeAudited(account) then
        if not account.wasAudited then add('ZADD', AUDITED, '+inf', id) end
      elseif account.wasAudited or leaseEnd == 0 or account.bookedBatchBefore < account.bookedBatch then
        -- One more than the count: `forget` is not counted.
        add('ZADD', AUDITED, int(storeCalls + 1), id)
      end
    end
  end
  for id, rate in pairs(rates) do
    if rate.isChanged then
      for length, use in pairs(uses) do
        add('HSET', use.present, id, cjson.encode(rate.current[length]))
        add('HSET', use.before, id, cjson.encode(rate.before[length]))
      end
    end
  end
  for id, inFlight in pairs(inFlights) do
    if inFlight.own ~= inFlight.ownBefore then
      save(IN_FLIGHT, id, int(inFlight.all), '0')
      if inFlight.own > 0 then add('ZADD', inFlightKey(input.account), int(inFlight.own), id)
      else add('ZREM', inFlightKey(input.account), id) end
    end
  end
  add('HSET', KEYS[1], 'storeCalls', int(storeCalls))
  add('HSET', KEYS[1], 'now', nowText)
  if lastCall == now then
    add('HSET', KEYS[1], 'lastCall', nowText)
    add('HSET', KEYS[1], 'lastBeforeSilence', int(lastBeforeSilence))
    add('HSET', KEYS[1], 'firstAfterSilence', int(firstAfterSilence))
  end
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

local function due(set, count) return redisCall('ZRANGEBYSCORE', set, '-inf', nowText, 'LIMIT', '0', int(count)) end
-- Runs a command with many members, in portions.
local function runFor(command, key, members)
  for i = 1, #members, MAX_FIELDS do redisCall(command, key, unpack(members, i, math.min(i + MAX_FIELDS - 1, #members))) end
end
-- Shortens the list of names, so that one step reads at most the maximum figures of these accounts.
local function limitNames(names, ids)
  local figures, maxFigures = 0, math.max(MAX_FIGURES, FIGURES_PER_ACCOUNT * #ids)
  for _, id in ipairs(ids) do figures = figures + math.min(#names, redisCall('HLEN', figuresKey(id))) end
  if figures <= maxFigures then return end
  for i = #names, math.floor(maxFigures / #ids) + 1, -1 do names[i] = nil end
end
-- Drops counters whose window is over and in which no account has figures. It reads all live accounts. Returns the pause
-- after it.
local function dropCounters()
  local names, isDue, isUsed, emptyFigures, unused = due(LOADED, MAX_REMOVED), {}, {}, {}, {}
  if not names[1] then return 0 end
  local ids, figures = redisCall('ZRANGE', LEASES, '0', '-1'), 0
  limitNames(names, ids)
  for _, name in ipairs(names) do isDue[name] = true end
  for _, id in ipairs(ids) do
    emptyFigures[id] = {}
    for name, figure in pairs(figuresOf(accountOf(id), names)) do
      figures = figures + 1
      if hasFigures(figure) then isUsed[name] = true
      elseif isDue[name] and figure.text ~= '0 0 0' then table.insert(emptyFigures[id], name) end
    end
  end
  for _, name in ipairs(names) do
    if isUsed[name] then redisCall('ZADD', LOADED, int(now + 10 * SECOND), name)
    else unused[#unused + 1] = name end
  end
  runFor('HDEL', COUNTERS, unused)
  runFor('ZREM', LOADED, unused)
  for id, own in pairs(emptyFigures) do
    local ended = {}
    for _, name in ipairs(own) do if not isUsed[name] then ended[#ended + 1] = name end end
    runFor('HDEL', figuresKey(id), ended)
  end
  -- The accounts that were read here must not be written.
  accounts = {}
  return math.floor(#ids / ACCOUNTS_PER_MILLI + figures / FIGURES_PER_MILLI)
end
-- Removes finished accounts after a while, and counters. The times of both are written last: a full Redis refuses a write
-- that takes memory, unless this call has removed something before.
local function cleanUp()
  if tonumber(meta[5] or '0') + SECOND <= now then
    for _, id in ipairs(due(FINISHED, MAX_REMOVED)) do
      redisCall('UNLINK', figuresKey(id), forgottenKey(id))
      redisCall('HDEL', KEYS[1], id)
      redisCall('ZREM', FINISHED, id)
      redisCall('ZREM', AUDITED, id)
      -- The text of the call's account is out of date.
      if id == input.account then meta[6] = nil end
    end
    redis.pcall('HSET', KEYS[1], 'cleanedAt', nowText)
  end
  -- A pause in proportion to what the last step has read, so that this takes a small share of the server's time; shorter
  -- while more counters are due than one step drops. So the store does not grow with windows that are over.
  local age = now - tonumber(meta[10] or '0')
  local isBehind = operation == 'load' and SOON <= age and redisCall('ZCOUNT', LOADED, '-inf', nowText) > FEW_DUE
  if isBehind or SECOND <= age then
    meta[10] = int(now + dropCounters())
    redis.pcall('HSET', KEYS[1], 'countersCleanedAt', meta[10])
  end
end

-- Forgets figures of an account, for `forget`, `accountsToForget` and `finishesAccount`: their escrow is free, and their
-- risk becomes spend if PostgreSQL has charged it.
local function forgetFigures(account, names, isCharged)
  readFields(COUNTERS, names, addCounter)
  readFields(figuresKey(account.id), names, function(name, text) if text then addFigure(account, name, text) end end)
  for _, name in ipairs(names) do
    local counter, figure = counters[name], account.figures[name]
    if figure and not figure.isForgotten then
      counter.escrowOfAll, figure.escrow, figure.isForgotten = counter.escrowOfAll - figure.escrow, ZERO, true
      if isCharged and counter.spent then counter.spent = counter.spent + figure.risk end
    end
  end
end

-- The requests in flight of a rate: of all accounts, and of the account of this step.
local function addInFlight(id, all, own)
  inFlights[id] = inFlights[id] or { all = tonumber(all or '0'), own = tonumber(own or '0'), ownBefore = tonumber(own or '0') }
  return inFlights[id]
end
local function inFlightOf(id)
  return inFlights[id] or addInFlight(id, redisCall('HGET', IN_FLIGHT, id), redisCall('ZSCORE', inFlightKey(input.account), id))
end
-- Adds to the requests in flight of the account, which ends at most what it has.
local function changeInFlight(id, by)
  local inFlight = inFlightOf(id)
  by = math.max(by, -inFlight.own)
  inFlight.all, inFlight.own = inFlight.all + by, inFlight.own + by
end
-- Ends the requests in flight of the account, in at most a page of rates; returns whether none are left.
local function endInFlight()
  local key, ids, owns = inFlightKey(input.account), {}, {}
  local page = redisCall('ZRANGE', key, '0', int(RATES_PAGE - 1), 'WITHSCORES')
  for i = 1, #page, 2 do ids[#ids + 1], owns[page[i]] = page[i], page[i + 1] end
  readFields(IN_FLIGHT, ids, function(id, all) addInFlight(id, all, owns[id]) end)
  for id, inFlight in pairs(inFlights) do changeInFlight(id, -inFlight.own) end
  return #ids < RATES_PAGE
end
-- Finishes an account that has no figures left. It stays frozen, and is closed again, while it has requests in flight in
-- further rates. An unknown account is remembered from now on.
local function finishAccount(account, state)
  account.state, account.isChanged = 'frozen', true
  if endInFlight() then account.state, account.leaseEnd = state, 0 end
end

-- Rates: the use in the current window, and the share of the previous window that the last window length still covers,
-- rounded down.
local function rateOf(id)
  if rates[id] == nil then
    local function readUse(hash) return cjson.decode(redisCall('HGET', hash, id) or '{}') end
    local rate = { current = {}, before = {} }
    for length, use in pairs(uses) do rate.current[length], rate.before[length] = readUse(use.present), readUse(use.before) end
    rates[id] = rate
  end
  return rates[id]
end
-- The use of a kind in the current window, and in the previous window.
local function countsOf(rate, kind)
  local length = WINDOWS[kind]
  return rate.current[length][kind] or 0, rate.before[length][kind] or 0, length
end
-- The use that a request adds. An estimate above the limit uses the whole limit, once nothing else uses it.
local function addedUse(limit, kind, rateRequest) return IS_ESTIMATED[kind] and math.min(rateRequest[kind], limit[kind]) or 1 end
local function usedOf(rate, kind)
  local current, before, length = countsOf(rate, kind)
  return current + before - math.ceil(before * (now % length) / length)
end
-- Changes the use in the window that contains the minute; a window that no longer counts does not change.
local function addUse(rate, kind, by, at)
  local length = WINDOWS[kind]
  local number, last = math.floor(at * MINUTE / length), uses[length].number
  local counts = number == last and rate.current[length] or number == last - 1 and rate.before[length]
  if counts then counts[kind], rate.isChanged = math.max(0, (counts[kind] or 0) + by), true end
end
-- The time until the use is at most `target`.
local function untilUsed(rate, kind, target)
  if usedOf(rate, kind) <= target then return 0 end
  local current, before, length = countsOf(rate, kind)
  local function from(count, rest) return math.floor(length * (count - rest - 1) / count) + 1 end
  return (current > target and length + from(current, target) or from(before, target - current)) - now % length
end
-- The rate of a limit with the longest wait; nil if the limit has room. Clients ignore waits of more than a minute, and a
-- limit of 0 never has room.
local function waitOf(limit, rateRequest, index)
  local rate, maxWait = rateOf(limit.id), nil
  local function consider(kind, wait)
    if wait > (maxWait and maxWait.retryIn or 0) then maxWait = { outcome = 'limited', limitIndex = index, rate = kind, retryIn = wait } end
  end
  for _, kind in ipairs(KINDS) do
    local target = limit[kind] and limit[kind] - addedUse(limit, kind, rateRequest)
    if target then consider(kind, target < 0 and MINUTE or math.min(MINUTE, untilUsed(rate, kind, target))) end
  end
  if limit.parallel and inFlightOf(limit.id).all >= limit.parallel then consider('parallel', SECOND) end
  return maxWait
end
-- The rate that refuses, and the first model entry with room. If none has room, the one that has room first refuses.
local function checkRates(rateRequest)
  local maxWait, minWait
  for i, limit in ipairs(rateRequest.limits) do
    local wait = waitOf(limit, rateRequest, i - 1)
    if wait and wait.retryIn > (maxWait and maxWait.retryIn or 0) then maxWait = wait end
  end
  for i, entry in ipairs(rateRequest.modelEntryLimits) do
    local wait = entry ~= cjson.null and waitOf(entry, rateRequest, #rateRequest.limits + i - 1)
    if not wait then return maxWait, i end
    if wait.retryIn < (minWait and minWait.retryIn or MINUTE + 1) then minWait = wait end
  end
  return minWait and minWait.retryIn > (maxWait and maxWait.retryIn or 0) and minWait or maxWait
end
local function takeRates(rateRequest, modelEntryIndex)
  local limits = { unpack(rateRequest.limits) }
  if modelEntryIndex and rateRequest.modelEntryLimits[modelEntryIndex] ~= cjson.null then limits[#limits + 1] = rateRequest.modelEntryLimits[modelEntryIndex] end
  for _, limit in ipairs(limits) do
    local rate = rateOf(limit.id)
    for _, kind in ipairs(KINDS) do
      if limit[kind] then addUse(rate, kind, addedUse(limit, kind, rateRequest), minute) end
    end
    if limit.parallel then changeInFlight(limit.id, 1) end
  end
end
local function remaindersOf(rateRequest)
  local remainders = {}
  for i, limit in ipairs(rateRequest.limits) do
    local rate = rateOf(limit.id)
    remainders[i] = {}
    for _, kind in ipairs(KINDS) do
      if limit[kind] then
        remainders[i][kind] = { remaining = math.max(0, limit[kind] - usedOf(rate, kind)), resetIn = untilUsed(rate, kind, 0) }
      end
    end
  end
  return remainders
end
local function applyRateChange(rateChange)
  local rate = rateOf(rateChange.id)
  for _, kind in ipairs(KINDS) do addUse(rate, kind, rateChange[kind], rateChange.minute or minute) end
  if rateChange.parallel ~= 0 then changeInFlight(rateChange.id, rateChange.parallel) end
end

-- Sets an absent counter to its sum.
local function loadSum(counter, sum)
  if counter.spent == nil then counter.spent, counter.keptUntil = sum, math.max(now, select(2, windowOf(counter))) + KEEP end
end
-- Changes of a call: { counter, limit or false, spend, risk, returned, carriedOver, ahead, spend of later batches }; zeros
-- at the end may be left out.
local function readChanges()
  local changes, names = {}, {}
  for i, fields in ipairs(input.changes) do names[i] = fields[1] end
  readFields(COUNTERS, names, addCounter)
  for i, fields in ipairs(input.changes) do
    local ahead, spend, isSpending = toSize(fields[7]), ZERO, false
    local parts = { { batch = input.batch, spend = fields[3] or '0' }, unpack(fields[8] or {}) }
    for _, part in ipairs(parts) do
      part.spend = toAmount(part.spend)
      spend, isSpending = spend + part.spend, isSpending or part.spend ~= ZERO
    end
    changes[i] = {
      fields = fields, counter = counters[fields[1]], limit = fields[2] and toSum(fields[2]), spend = spend, parts = parts,
      ahead = ahead, mustBeLoaded = isSpending or ZERO < ahead, needsCurrentWindow = ZERO < ahead,
    }
  end
  for _, request in ipairs(input.requests) do
    for i, index in ipairs(request.counters) do
      local change = changes[index + 1]
      if change == nil or change.request == request then error('a request must name different counters of its call', 0) end
      request.counters[i], change.request, change.needsCurrentWindow = change, request, change.needsCurrentWindow or not request.isGrowth
    end
  end
  return changes, names
end
local function readFigures(account, changes, names)
  readFields(figuresKey(account.id), names, function(name, text, i) changes[i].figure = addFigure(account, name, text) end)
end
-- The outcome of a call of which nothing is done; nil if it can be done.
local function obstacleOf(changes)
  local absent, isOver = {}, false
  for i, change in ipairs(changes) do
    if not change.counter.spent and change.mustBeLoaded then absent[#absent + 1] = i - 1 end
    -- Growth names the window of its reservation. A scope without a limit has one window for its whole life, which may
    -- begin a moment later than this clock's time.
    if change.needsCurrentWindow and change.limit and not isOver then
      local start, finish = windowOf(change.counter)
      isOver = now < start or finish <= now
    end
  end
  if absent[1] then return { outcome = 'absent', absent = absent } end
  return isOver and { outcome = 'window' } or nil
end
local function addEscrow(change, by) change.figure.escrow, change.counter.escrowOfAll = change.figure.escrow + by, change.counter.escrowOfAll + by end
-- Applies a change: spend is taken from escrow, as far as there is any; idle escrow is returned; escrow of a
-- previous account is carried over.
local function applyChange(change, account)
  local fields, counter, figure = change.fields, change.counter, change.figure
  addEscrow(change, toSize(fields[6]) - min(figure.escrow, max(ZERO, change.spend) + toSize(fields[5])))
  figure.risk = toSize(fields[4])
  for _, part in ipairs(change.parts) do
    if part.spend ~= ZERO then
      local last = figure.unbookedSpend[#figure.unbookedSpend]
      if last and last.batch == part.batch then last.spend = last.spend + part.spend
      else figure.unbookedSpend[#figure.unbookedSpend + 1] = part end
      counter.spent, account.reportedBatch = counter.spent + part.spend, math.max(account.reportedBatch, part.batch)
    end
  end
end
-- The part of the amount that spend leaves (less than requested is also granted), or the refusal.
local function clamp(request)
  local granted = toSize(request.amount)
  local minGranted = min(granted, toSize(request.minAmount))
  for i, change in ipairs(request.counters) do
    local rest = change.limit and change.limit - change.counter.spent
    if rest and (rest <= ZERO or rest < minGranted) then return nil, { outcome = 'exceeded', counter = i - 1, spent = textOf(change.counter.spent) } end
    granted = rest and min(granted, rest) or granted
  end
  return granted
end
-- Grants a request in all its counters or in none. Spend takes precedence over a rate, a rate over escrow.
local function decide(request, account)
  local granted, refusal = clamp(request)
  local rateRefusal, modelEntryIndex
  if granted and request.rates then rateRefusal, modelEntryIndex = checkRates(request.rates) end
  if refusal or rateRefusal then return refusal or rateRefusal end
  for i, change in ipairs(request.counters) do
    local counter = change.counter
    if change.limit and ZERO < granted and change.limit < counter.spent + counter.escrowOfAll + granted then
      refusal = refusal or { outcome = 'held', counter = i - 1 }
      -- Two accounts are enough to know for each account whether another account was refused.
      counter.refusals = ' ' .. account.id .. ' ' .. nowText .. (match(refusalsIn(counter, account.id), '^ %S+ %d+') or '')
    end
  end
  if refusal then return refusal end
  for _, change in ipairs(request.counters) do
    if change.limit then addEscrow(change, granted) end
    change.figure.risk = change.figure.risk + granted
  end
  if request.rates then takeRates(request.rates, modelEntryIndex) end
  return { outcome = 'reserved', amount = textOf(granted) }, modelEntryIndex and modelEntryIndex - 1
end
-- The reply to one request of a call (`ReservationReply` of the port).
local function answerRequest(request, account)
  if input.deadline < now then return { outcome = 'late' } end
  for _, change in ipairs(request.counters) do
    if not change.counter.spent then return { outcome = 'absent' } end
  end
  local reply, modelEntryIndex = decide(request, account)
  reply.rates = request.rates and { modelEntryIndex = modelEntryIndex, minute = minute, remainders = remaindersOf(request.rates) }
  for _, change in ipairs(request.counters) do
    change.isRefused = change.isRefused or reply.outcome == 'exceeded' or reply.outcome == 'held'
  end
  return reply
end
local function liveAccounts()
  local live = redisCall('ZCOUNT', LEASES, '(' .. nowText, '+inf')
  for _, account in pairs(accounts) do
    live = live + (account.leaseEnd > now and 1 or 0) - (account.leaseEndBefore > now and 1 or 0)
  end
  return live
end
-- Grants escrow ahead of requests: a sixteenth of what is left, divided among the live accounts; none if a request was
-- refused.
local function grantAhead(changes)
  local share
  for _, change in ipairs(changes) do
    local counter = change.counter
    if change.ahead ~= ZERO and change.limit and not change.isRefused and refusalsIn(counter) == '' then
      share = share or 16 * liveAccounts()
      if money.times(change.ahead, share) <= change.limit - counter.spent - counter.escrowOfAll then addEscrow(change, change.ahead) end
    end
  end
end
-- An account with more figures than a page is frozen, so that its figures are forgotten page by page.
local function finishAfterCall(account)
  local names = redisCall('HLEN', figuresKey(account.id)) <= FIGURES_PAGE and redisCall('HKEYS', figuresKey(account.id))
  if not names then account.state = 'frozen' return end
  for name in pairs(account.figures) do names[#names + 1] = name end
  forgetFigures(account, names, false)
  finishAccount(account, 'finished')
end
-- The work of a call that was not done before.
local function perform(account, changes, names)
  account.bookedBatch = math.max(account.bookedBatch, input.bookedBatch)
  readFigures(account, changes, names)
  for _, change in ipairs(changes) do applyChange(change, account) end
  for _, id in ipairs(input.accountsToForget) do
    if accountOf(id).state == 'frozen' then forgetFigures(accounts[id], names, true) end
  end
  for _, rateChange in ipairs(input.rateChanges) do applyRateChange(rateChange) end
  local replies = {}
  for i, request in ipairs(input.requests) do replies[i] = answerRequest(request, account) end
  if now <= input.deadline then grantAhead(changes) end
  if input.finishesAccount then finishAfterCall(account) end
  return { outcome = 'done', replies = replies }
end

local operations = {}
function operations.call()
  local account, callNumber = accountOf(input.account), input.callNumber
  local state, isLate = account.state, callNumber == 1 and input.deadline < now
  local isRepeated = callNumber == account.callNumber and (state == 'live' or state == 'finished')
  if not isRepeated then
    local hasEnded = callNumber <= account.callNumber or (state ~= 'live' and state ~= 'unknown') or (state == 'unknown' and isLate)
    local why = hasEnded and 'accountClosed' or callNumber > account.callNumber + 1 and 'wentBack'
    if why then return { outcome = 'stale', why = why, now = now, storeCalls = storeCalls } end
  end
  recordCall()
  local changes, names = readChanges()
  if not isRepeated then
    storeCalls = storeCalls + 1
    account.callNumber, account.state, account.leaseEnd, account.isChanged = callNumber, 'live', now + input.lease, true
    for _, pair in ipairs(now <= input.deadline and input.sums or {}) do loadSum(changes[pair[1]].counter, toSum(pair[2])) end
    account.outcome = cjson.encode(obstacleOf(changes) or perform(account, changes, names))
  end
  local isDone, reply = string.find(account.outcome, '"done"', 1, true), { now = now, storeCalls = storeCalls }
  if isDone then
    local states, endedAccounts = {}, {}
    if isRepeated then readFigures(account, changes, names) end
    for i, change in ipairs(changes) do
      local counter, figure = change.counter, change.figure
      counter.newText, figure.newText = counterText(counter), figureText(figure)
      states[i] = { counter.newText, figure.newText, refusalsIn(counter, account.id) ~= '' }
    end
    for _, id in ipairs(redisCall('ZRANGEBYSCORE', LEASES, '-inf', int(endedUntil()), 'LIMIT', '0', int(MAX_ENDED))) do
      if id ~= account.id and not (accounts[id] and accounts[id].leaseEnd == 0) then endedAccounts[#endedAccounts + 1] = id end
    end
    reply.liveAccounts, reply.counters, reply.endedAccounts = liveAccounts(), states, endedAccounts
  end
  write()
  -- The outcome is JSON already.
  return string.sub(account.outcome, 1, -2) .. ',' .. string.sub(cjson.encode(reply), 2)
end

function operations.freeze()
  local account = accountOf(input.account)
  if account.leaseEnd == 0 then
    if account.state == 'unknown' then finishAccount(account, 'forgotten') end
    storeCalls = storeCalls + 1
    write()
    return { outcome = 'none', now = now, storeCalls = storeCalls }
  end
  if not input.isOwn and account.leaseEnd > endedUntil() then return { outcome = 'live', now = now } end
  account.state, account.isChanged, storeCalls = 'frozen', true, storeCalls + 1
  write()
  return { outcome = 'frozen', now = now, storeCalls = storeCalls, callNumber = account.callNumber }
end

-- `HSCAN` returns each figure that stays until its end at least once, on the same server.
function operations.figures()
  local account, key, figures, names = accountOf(input.account), figuresKey(input.account), {}, {}
  if account.state ~= 'frozen' then return { outcome = 'none' } end
  local page = redisCall('HSCAN', key, input.cursor or '0', 'COUNT', int(FIGURES_PAGE))
  for i = 1, #page[2], 2 do
    names[#names + 1] = page[2][i]
    addFigure(account, page[2][i], page[2][i + 1])
  end
  readFields(COUNTERS, names, addCounter)
  for i, name in ipairs(names) do
    local figure, unbookedSpend = account.figures[name], {}
    for at, part in ipairs(figure.unbookedSpend) do unbookedSpend[at] = { batch = part.batch, spend = textOf(part.spend) } end
    figures[i] = { counter = name, escrow = textOf(figure.escrow), risk = textOf(figure.risk), unbookedSpend = unbookedSpend, isAbsent = not counters[name].spent }
  end
  return { outcome = 'page', figures = figures, total = redisCall('HLEN', key), next = page[1] ~= '0' and page[1] or nil }
end

function operations.forget()
  local account, key = accountOf(input.account), figuresKey(input.account)
  if account.state == 'frozen' or account.state == 'unknown' then
    forgetFigures(account, input.counters, input.isCharged)
    local left = redisCall('HLEN', key)
    for _ in pairs(account.figures) do left = left - 1 end
    if left == 0 then finishAccount(account, 'forgotten') end
  end
  write()
  return {}
end

function operations.load()
  for _, pair in ipairs(input.sums) do loadSum(counterOf(pair[1]), toSum(pair[2])) end
  write()
  return {}
end

function operations.read()
  local states = {}
  for i, name in ipairs(input.counters) do
    local counter = counterOf(name)
    states[i] = counter.spent and { textOf(counter.spent), textOf(counter.escrowOfAll) } or false
  end
  return states
end

function operations.accounts()
  local all = {}
  for i, id in ipairs(redisCall('ZRANGEBYSCORE', LEASES, '-inf', input.isEnded and int(endedUntil()) or '+inf', 'LIMIT', '0', int(input.max))) do
    local account = accountOf(id)
    all[i] = { account = id, callNumber = account.callNumber, unbookedBatch = account.reportedBatch > account.bookedBatch and account.reportedBatch or 0 }
  end
  return { accounts = all }
end

-- Pages begin at the end of the set, since counters are removed from its start.
function operations.loaded()
  local names = redisCall('ZREVRANGE', LOADED, int(input.from), int(input.from + input.max - 1))
  return { counters = names, total = redisCall('ZCARD', LOADED) }
end

-- Adds to the sums what an account has reported and PostgreSQL has not booked, according to the account's row, which was
-- read before the sums. Returns whether the account has changed since then in a counter: it is in `changed` too, and its
-- sum gets the least that the account can add. Subtracts from `minSums` what PostgreSQL may not have yet.
local function auditAccount(account, row, expectedSpend, minSums, changed)
  local hasChanged = false
  for name, figure in pairs(account.figures) do
    for _, part in ipairs(expectedSpend[name] and not figure.isForgotten and figure.unbookedSpend or {}) do
      minSums[name] = minSums[name] - max(ZERO, part.spend)
    end
    local hasSpend, isUnknown = figure.risk ~= ZERO or figure.unbookedSpend[1] ~= nil, false
    if expectedSpend[name] == nil then hasSpend = false
    elseif row == nil then isUnknown = hasSpend or figure.lastBookedBatch > 0
    elseif row.isClosed then
      if row.isClosing then isUnknown = hasSpend
      elseif row.isCharged and not figure.isForgotten then expectedSpend[name] = expectedSpend[name] - figure.risk end
    elseif figure.lastBookedBatch > row.bookedBatch or (figure.isForgotten and hasSpend) then isUnknown = true
    else
      for _, part in ipairs(figure.unbookedSpend) do
        if part.batch > row.bookedBatch then expectedSpend[name] = expectedSpend[name] + part.spend end
      end
      -- PostgreSQL has booked so many later batches that no running audit still has a row from before this one.
      if figure.lastBookedBatch + OLD_BATCHES < row.bookedBatch then figure.lastBookedBatch = 0 end
    end
    if isUnknown then
      hasChanged, changed[name] = true, true
      for _, part in ipairs(figure.isForgotten and {} or figure.unbookedSpend) do expectedSpend[name] = expectedSpend[name] + min(ZERO, part.spend) end
      -- PostgreSQL may have charged it.
      if account.state == 'frozen' and not figure.isForgotten then expectedSpend[name] = expectedSpend[name] - figure.risk end
    end
  end
  return hasChanged
end
function operations.audit()
  local names, expectedSpend, missingInSum, minSums, changed = {}, {}, {}, {}, {}
  local reply = { outcome = 'done', now = now, differences = {}, changedAccounts = {}, minSums = {} }
  local differences, changedAccounts = reply.differences, reply.changedAccounts
  local ids = redisCall('ZRANGEBYSCORE', AUDITED, '(' .. int(input.storeCallsBefore), '+inf', 'LIMIT', '0', int(MAX_AUDITED + 1))
  if #ids > MAX_AUDITED and input.sums[1] then
    reply.storeCalls, changedAccounts[1] = storeCalls, ids[1]
    return reply
  end
  -- The sum of so many unbooked amounts might not be exact as a double.
  if #ids > 200 and money == NARROW then error(WIDE, 0) end
  for i, pair in ipairs(input.deadline < now and {} or input.sums) do
    local name, counter = pair[1], counterOf(pair[1])
    names[i] = name
    if counter.spent then expectedSpend[name], minSums[name] = toSum(pair[2]), counter.spent end
    missingInSum[name] = max(ZERO, toSum(pair[3] or pair[2]) - toSum(pair[2]))
  end
  for _, id in ipairs(ids) do
    local account = accountOf(id)
    if account.state ~= 'live' then
      readSome(forgottenKey(id), names, function(name, text) if text then addFigure(account, name, text, true) end end)
    end
    figuresOf(account, names)
    if auditAccount(account, input.rows[id], expectedSpend, minSums, changed) then changedAccounts[#changedAccounts + 1] = id end
  end
  if input.acceptsChangedAccounts then reply.changedAccounts, changedAccounts = {}, {} end
  for name in pairs(changedAccounts[1] and changed or {}) do
    reply.minSums[#reply.minSums + 1] = { counter = name, spent = textOf(minSums[name]) }
  end
  for name, spent in pairs(changedAccounts[1] and {} or expectedSpend) do
    local counter = counterOf(name)
    if changed[name] then spent = max(spent, counter.spent - missingInSum[name]) end
    if spent ~= counter.spent then differences[#differences + 1] = { counter = name, by = textOf(spent - counter.spent) } end
    counter.spent = spent
  end
  if not changedAccounts[1] then
    storeCalls = storeCalls + 1
    write()
  end
  reply.storeCalls = storeCalls
  return reply
end

local function wipe()
  for _, id in ipairs(redisCall('HKEYS', KEYS[1])) do redisCall('UNLINK', figuresKey(id), forgottenKey(id), inFlightKey(id)) end
  for _, name in ipairs({ COUNTERS, LOADED, LEASES, FINISHED, AUDITED, IN_FLIGHT, KEYS[1] }) do redisCall('UNLINK', name) end
  for _, use in pairs(uses) do redisCall('UNLINK', use.present, use.before) end
end
function operations.begin()
  if input.epoch <= epoch or not input.isNew then
    -- The first write of a script shows whether this server takes writes: a full one allows them after a deletion.
    if input.isNew then redisCall('HSET', KEYS[1], 'now', nowText) end
    return { epoch = epoch }
  end
  wipe()
  redisCall('HSET', KEYS[1], 'layout', LAYOUT, 'epoch', int(input.epoch), 'now', nowText)
  return { epoch = input.epoch }
end
function operations.clear()
  wipe()
  return {}
end

if meta[1] then cleanUp() end
return operations[operation]()
end

local isDone, answer = pcall(run, NARROW)
if not isDone and answer == WIDE then
  input = cjson.decode(ARGV[2])
  isDone, answer = pcall(run, wideMoney())
end
-- Errors keep the server's text: clients recognise a replica by its first word.
if not isDone then return { err = type(answer) == 'table' and answer.err or answer } end
return type(answer) == 'string' and answer or cjson.encode(answer)
