-- Accounts of an instance in Redis: every method of functions/core/ports/accounts.ts as one atomic step (LEDGER 3 to 6).
-- By hand: redis-cli --eval infra/adapters/redis/account.lua '{instance}:meta' , accounts '{"isEnded":true,"max":10}'
--
-- KEYS[1] is `{instance}:meta`. Every key begins with `{instance}:`, so all share a slot:
--   meta          hash: layout, epoch, calls, now (the latest clock seen: a failover never turns it back), swept
--   c             hash: counter > `spent held`, then accounts that were refused here within a second, each with the instant;
--                 spent is `-` while the counter is absent and registered holds are in it
--   e             sorted set: loaded counter > until when it stays, used or not
--   h             hash: account > its head in JSON: number and outcome of the last call, state, end of the lease, batches told and booked
--   l             sorted set: account > the end of its lease
--   f             sorted set: finished account > until when it is remembered
--   a:<account>   hash: counter > `escrow risk left`, then each unbooked batch with its spend; left: the last batch that was booked
--   r:<minute>    hash: rate > requests and tokens in JSON; the only keys that expire
--   p             hash: rate > requests in flight by account, in JSON
-- A counter is named `start:end scope`. ARGV[1] names the operation, ARGV[2] has its arguments in JSON, amounts as strings; the reply is JSON,
-- with an `n` behind amounts (accounts.ts). A step reads, decides, and writes last: one that fails at a wrong argument has written nothing.
local LAYOUT, MINUTE, SECOND, KEEP, PORTION, MAX_ENDED, MAX_SWEPT = 'accounts 1', 60000, 1000, 60000, 2000, 16, 100
local prefix, operation, given = string.sub(KEYS[1], 1, -5), ARGV[1], cjson.decode(ARGV[2])
local meta = redis.call('HMGET', KEYS[1], 'layout', 'epoch', 'calls', 'now', 'swept')
if meta[1] ~= LAYOUT and (meta[1] or redis.call('EXISTS', prefix .. 'epoch') == 1) then
  return redis.error_reply('LAYOUT the store has the layout "' .. (meta[1] or 'holds') .. '" and this version reads "' .. LAYOUT
    .. '": stop all processes of the other version and delete the keys ' .. prefix .. '*')
end
local clock = redis.call('TIME')
local now = math.max(tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000), tonumber(meta[4] or '0'))
local epoch = tonumber(meta[2] or '0')
-- A step that names an epoch does nothing in another one.
if given.epoch and operation ~= 'begin' and given.epoch ~= epoch then
  return cjson.encode({ outcome = 'epoch', now = now, epoch = epoch })
end
local function int(number) return string.format('%d', number) end
local function key(kind, id) return prefix .. kind .. ':' .. id end
local nowText, minute = int(now), math.floor(now / MINUTE)
local present, before = key('r', int(minute)), key('r', int(minute - 1))

-- A command with any number of arguments: Lua passes at most some thousand.
local function many(command, name, values)
  if #values <= PORTION then return values[1] and redis.call(command, name, unpack(values)) or {} end
  local all = {}
  for from = 1, #values, PORTION do
    local part = redis.call(command, name, unpack(values, from, math.min(from + PORTION - 1, #values)))
    for i, value in ipairs(type(part) == 'table' and part or {}) do all[from + i - 1] = value end
  end
  return all
end
-- Fields of a hash by name: at least these, or all.
local function fieldsOf(hash, names)
  local found = {}
  if names and #names < redis.call('HLEN', hash) then
    for i, text in ipairs(many('HMGET', hash, names)) do found[names[i]] = text or nil end
  else
    local all = redis.call('HGETALL', hash)
    for i = 1, #all, 2 do found[all[i]] = all[i + 1] end
  end
  return found
end
local function headOf(id)
  local text = redis.call('HGET', prefix .. 'h', id)
  return text and cjson.decode(text) or nil
end
-- Whether figures are nothing: no escrow, no risk, and the last batch is booked.
local function isNothing(text, booked)
  return string.sub(text, 1, 4) == '0 0 ' and tonumber(string.match(text, '^0 0 %d+ .-(%d+) %-?%d+$') or '0') <= booked
end
-- Finished accounts are forgotten in the end, and counters whose window is over and that no account has anything in.
local function sweep()
  redis.call('HSET', KEYS[1], 'swept', nowText)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'f', '-inf', nowText, 'LIMIT', '0', int(10 * MAX_SWEPT))) do
    redis.call('DEL', key('a', id))
    redis.call('HDEL', prefix .. 'h', id)
    redis.call('ZREM', prefix .. 'f', id)
  end
  local names, used = redis.call('ZRANGEBYSCORE', prefix .. 'e', '-inf', nowText, 'LIMIT', '0', int(MAX_SWEPT)), {}
  for _, id in ipairs(names[1] and redis.call('ZRANGE', prefix .. 'l', '0', '-1') or {}) do
    local figures, booked = fieldsOf(key('a', id), names), headOf(id).booked
    for _, name in ipairs(names) do
      if figures[name] and not isNothing(figures[name], booked) then used[name] = true
      elseif figures[name] then redis.call('HDEL', key('a', id), name) end
    end
  end
  for _, name in ipairs(names) do
    if used[name] then redis.call('ZADD', prefix .. 'e', int(now + KEEP), name)
    else
      redis.call('HDEL', prefix .. 'c', name)
      redis.call('ZREM', prefix .. 'e', name)
    end
  end
end

-- Money is never a rounded number. Doubles are exact while amounts stay below ten thousand dollars and sums below three million: a step
-- changes a sum by some hundred amounts. Else the step starts over with two parts of nine digits, before anything is written.
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
  parts.__le = function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] <= b[2]) end
  parts.__eq = function(a, b) return a[1] == b[1] and a[2] == b[2] end
  local zero = of(0, 0)
  local function amount(text)
    local sign, digits = string.match(text, '^(%-?)(%d+)$')
    if digits == nil or #digits > 21 then error('not an amount: ' .. text, 0) end
    local size = of(tonumber(string.sub(digits, 1, -10)) or 0, tonumber(string.sub(digits, -9)))
    return sign == '' and size or zero - size
  end
  local function shown(a)
    if a < zero then return '-' .. shown(zero - a) end
    return a[1] == 0 and int(a[2]) or string.format('%d%09d', a[1], a[2])
  end
  return { amount = amount, sum = amount, zero = zero, shown = shown, times = function(a, factor) return of(a[1] * factor, a[2] * factor) end }
end

local function run(money)
local amount, sum, shown, ZERO = money.amount, money.sum, money.shown, money.zero
local calls = tonumber(meta[3] or '0')
local function told(number) return shown(number) .. 'n' end
local function min(a, b) return b < a and b or a end
local function max(a, b) return a < b and b or a end

-- Commands with lists of arguments, which run when everything is decided.
local pending, ended = {}, {}
local function later(command, name, ...) pending[#pending + 1] = { command, name, type(...) == 'table' and ... or { ... } } end

-- Counters, each read once. An absent one has no `spent`.
local counters = {}
local function recall(names)
  local missing = {}
  for _, name in ipairs(names) do
    if counters[name] == nil then
      local first, last = string.match(name, '^(%-?%d+):(%-?%d+) ')
      counters[name] = { first = tonumber(first), last = tonumber(last), held = ZERO, refused = '' }
      missing[#missing + 1] = last and name or error('not a counter: ' .. name, 0)
    end
  end
  local found = fieldsOf(prefix .. 'c', missing)
  for _, name in ipairs(missing) do
    if found[name] then
      local counter, spent, held, refused = counters[name], string.match(found[name], '^(%S+) (%S+)(.*)$')
      counter.text, counter.held, counter.refused = found[name], sum(held), refused
      if spent ~= '-' then counter.spent = sum(spent) end
    end
  end
end
-- The accounts that were refused in the counter within the last second, without this one.
local function refusedIn(counter, except)
  if counter.refused == '' then return '' end
  local found = ''
  for id, at in string.gmatch(counter.refused, ' (%S+) (%d+)') do
    if id ~= except and now - tonumber(at) < SECOND then found = found .. ' ' .. id .. ' ' .. at end
  end
  return found
end

-- Accounts. A finished one stays for a while: for its repeated last call, for late first ones, and for audits.
local function saveHead(id, head) later('HSET', prefix .. 'h', id, cjson.encode(head)) end
-- Figures of an account by counter: at least these, or all.
local function figuresOf(id, head, names)
  local figures = {}
  for name, text in pairs(fieldsOf(key('a', id), names)) do
    local escrow, risk, left, batches = string.match(text, '^(%d+) (%d+) (%d+)(.*)$')
    local figure = { escrow = amount(escrow), risk = amount(risk), left = tonumber(left), unbooked = {}, text = text }
    for batch, spend in string.gmatch(batches, ' (%d+) (%-?%d+)') do
      batch = tonumber(batch)
      if batch > head.booked then figure.unbooked[#figure.unbooked + 1] = { batch = batch, spend = amount(spend) }
      else figure.left = math.max(figure.left, batch) end
    end
    figures[name] = figure
  end
  return figures
end
local function figureText(figure)
  local text = shown(figure.escrow) .. ' ' .. shown(figure.risk) .. ' ' .. int(figure.left)
  for _, one in ipairs(figure.unbooked) do text = text .. ' ' .. int(one.batch) .. ' ' .. shown(one.spend) end
  return text
end
local function setAside(name, figure, size)
  figure.escrow, counters[name].held = figure.escrow + size, counters[name].held + size
end

-- Rates: the use of this minute, and of the one before by the share of it that lies in the last 60 s, rounded down.
local rates = {}
local function rateOf(id)
  if rates[id] == nil then
    local function read(name, nothing) return cjson.decode(redis.call('HGET', name, id) or nothing) end
    rates[id] = { read(present, '{"requests":0,"tokens":0}'), read(before, '{"requests":0,"tokens":0}'), inFlight = read(prefix .. 'p', '{}') }
  end
  return rates[id]
end
local function saveRate(id, rate)
  for at, name in ipairs({ present, before }) do
    redis.call('HSET', name, id, cjson.encode(rate[at]))
    redis.call('PEXPIRE', name, int(3 * MINUTE))
  end
  if next(rate.inFlight) then redis.call('HSET', prefix .. 'p', id, cjson.encode(rate.inFlight)) else redis.call('HDEL', prefix .. 'p', id) end
end
local function write()
  local set, unset = {}, {}
  for name, counter in pairs(counters) do
    if counter.spent or counter.held ~= ZERO then
      local text = (counter.spent and shown(counter.spent) or '-') .. ' ' .. shown(counter.held) .. refusedIn(counter)
      if text ~= counter.text then set[#set + 1], set[#set + 2] = name, text end
    elseif counter.text then unset[#unset + 1] = name end
  end
  many('HSET', prefix .. 'c', set)
  many('HDEL', prefix .. 'c', unset)
  for id, rate in pairs(rates) do
    if rate.isChanged then saveRate(id, rate) end
  end
  for _, one in ipairs(pending) do many(one[1], one[2], one[3]) end
  redis.call('HSET', KEYS[1], 'calls', int(calls), 'now', nowText)
end

-- An account ends: its escrow is free, and its risk is spend if PostgreSQL has charged it. An unknown one is known from now on.
local function forget(id, head, figures, isCharged, state)
  local names = {}
  for name in pairs(figures) do names[#names + 1] = name end
  recall(names)
  for name, figure in pairs(figures) do
    setAside(name, figure, ZERO - figure.escrow)
    local counter = counters[name]
    if isCharged and counter.spent then counter.spent = counter.spent + figure.risk end
  end
  ended[id], head.state, head.lease = true, state, 0
  saveHead(id, head)
  later('ZREM', prefix .. 'l', id)
  later('ZADD', prefix .. 'f', int(now + KEEP), id)
end
local function close(id, isCharged)
  local head = headOf(id) or { number = 0, booked = 0, told = 0 }
  if head.lease ~= 0 then forget(id, head, figuresOf(id, head), isCharged, 'closed') end
end

local function usedOf(rate, what) return rate[1][what] + rate[2][what] - math.ceil(rate[2][what] * (now % MINUTE) / MINUTE) end
local function addUse(id, what, by)
  local rate = rateOf(id)
  local sum = rate[1][what] + by
  rate.isChanged, rate[1][what], rate[2][what] = true, math.max(0, sum), math.max(0, rate[2][what] + math.min(0, sum))
end
local function fly(id, by)
  local rate = rateOf(id)
  local own = (rate.inFlight[given.account] or 0) + by
  rate.isChanged, rate.inFlight[given.account] = true, own > 0 and own or nil
end
-- Requests in flight of accounts that have not ended.
local function inFlightOf(rate)
  local sum = 0
  for id, count in pairs(rate.inFlight) do
    if id == given.account or (not ended[id] and redis.call('ZSCORE', prefix .. 'l', id)) then sum = sum + count else rate.inFlight[id] = nil end
  end
  return sum
end
-- The time until no more than `most` is used.
local function untilUsed(rate, what, most)
  if usedOf(rate, what) <= most then return 0 end
  local function from(count, rest) return math.floor(MINUTE * (count - rest - 1) / count) + 1 end
  local current = rate[1][what]
  return (current > most and MINUTE + from(current, most) or from(rate[2][what], most - current)) - now % MINUTE
end
local function longer(one, other)
  if one == nil or (other and other.retryIn > one.retryIn) then return other end
  return one
end
-- The rate of a limit that keeps a request of so many tokens waiting longest. Clients ignore waits of more than a minute.
local function waitOf(limit, tokens, index)
  local rate, longest = rateOf(limit.id), nil
  local function consider(kind, wait)
    if wait > 0 then longest = longer(longest, { outcome = 'limited', limit = index, rate = kind, retryIn = math.min(MINUTE, wait) }) end
  end
  local function considerUse(what, most) consider(what, most < 0 and MINUTE or untilUsed(rate, what, most)) end
  if limit.requests then considerUse('requests', limit.requests - 1) end
  -- A request for more than the limit has the whole of it to itself, once it is free.
  if limit.tokens then considerUse('tokens', limit.tokens - math.min(tokens, limit.tokens)) end
  if limit.parallel and inFlightOf(rate) >= limit.parallel then consider('parallel', SECOND) end
  return longest
end
-- The first entry with room, or the wait for the one that has it first.
local function chooseEntry(asked)
  local soonest
  for i, entry in ipairs(asked.entries) do
    local wait = entry and waitOf(entry, asked.tokens, #asked.limits + i - 1)
    if not wait then return i end
    if soonest == nil or wait.retryIn < soonest.retryIn then soonest = wait end
  end
  return nil, soonest
end
local function limitedBy(asked)
  local longest
  for i, limit in ipairs(asked.limits) do longest = longer(longest, waitOf(limit, asked.tokens, i - 1)) end
  local _, soonest = chooseEntry(asked)
  return longer(longest, soonest)
end
local function takeRates(asked)
  local chosen, taken = chooseEntry(asked), { unpack(asked.limits) }
  if chosen and asked.entries[chosen] then taken[#taken + 1] = asked.entries[chosen] end
  for _, limit in ipairs(taken) do
    if limit.requests then addUse(limit.id, 'requests', 1) end
    if limit.tokens then addUse(limit.id, 'tokens', math.min(asked.tokens, limit.tokens)) end
    if limit.parallel then fly(limit.id, 1) end
  end
  return chosen and chosen - 1
end
local function leftOf(asked, entry)
  local left = {}
  for i, limit in ipairs(asked.limits) do
    left[i] = {}
    for _, what in ipairs({ 'requests', 'tokens' }) do
      local rate, most = rateOf(limit.id), limit[what]
      if most then left[i][what] = { remaining = math.max(0, most - usedOf(rate, what)), resetIn = untilUsed(rate, what, 0) } end
    end
  end
  return { entry = entry, left = left[1] and left }
end

-- Lines of a call: { counter, limit or false, spend, risk, returned, registered, ahead }; 0 may be left out at the end.
local function readLines(head)
  local lines, names = {}, {}
  for i, of in ipairs(given.lines) do names[i] = of[1] end
  recall(names)
  local figures = names[1] and figuresOf(given.account, head, names) or {}
  for i, of in ipairs(given.lines) do
    local figure = figures[of[1]] or { escrow = ZERO, risk = ZERO, left = 0, unbooked = {}, text = '0 0 0' }
    local ahead = amount(of[7] or '0')
    lines[i] = {
      name = of[1], counter = counters[of[1]], figure = figure, limit = of[2] and sum(of[2]), spend = amount(of[3] or '0'), risk = amount(of[4] or '0'),
      freed = amount(of[5] or '0'), registered = amount(of[6] or '0'), ahead = ahead, isAsked = ZERO < ahead, isRefused = false,
    }
  end
  for _, ask in ipairs(given.asks) do
    for i, index in ipairs(ask.lines) do
      ask.lines[i] = lines[index + 1] or error('an ask names no line', 0)
      ask.lines[i].isAsked = true
    end
  end
  return lines
end
-- Why nothing is done.
local function obstacle(lines)
  local absent = {}
  for i, line in ipairs(lines) do
    if not line.counter.spent and (line.isAsked or line.spend ~= ZERO) then absent[#absent + 1] = i - 1 end
  end
  if absent[1] then return { outcome = 'absent', absent = absent } end
  for _, line in ipairs(lines) do
    if line.isAsked and (now < line.counter.first or line.counter.last <= now) then return { outcome = 'window' } end
  end
end
-- Spend leaves escrow, as far as there is any; idle escrow goes back; live holds are held again.
local function settle(line)
  local counter, figure, spend = line.counter, line.figure, line.spend
  setAside(line.name, figure, line.registered - min(figure.escrow, max(ZERO, spend) + line.freed))
  figure.risk = line.risk
  if spend == ZERO then return end
  counter.spent = counter.spent + spend
  local last = figure.unbooked[#figure.unbooked]
  if last and last.batch == given.batch then last.spend = last.spend + spend
  else figure.unbooked[#figure.unbooked + 1] = { batch = given.batch, spend = spend } end
end
-- All of an ask or nothing. Spend takes precedence over a rate, a rate over escrow.
local function answer(ask)
  local size, busy = amount(ask.amount), nil
  local least = min(size, amount(ask.minAmount))
  for i, line in ipairs(ask.lines) do
    local rest = line.limit and line.limit - line.counter.spent
    if rest and (rest <= ZERO or rest < least) then return { outcome = 'exceeded', counter = i - 1, spent = told(line.counter.spent) } end
    size = rest and min(size, rest) or size
  end
  local limited = ask.rates and limitedBy(ask.rates)
  if limited then return limited end
  for i, line in ipairs(ask.lines) do
    local counter = line.counter
    if line.limit and ZERO < size and line.limit < counter.spent + counter.held + size then
      busy = busy or { outcome = 'busy', counter = i - 1 }
      -- Two accounts are enough to know whether another one than any was refused.
      counter.refused = ' ' .. given.account .. ' ' .. nowText .. (string.match(refusedIn(counter, given.account), '^ %S+ %d+') or '')
    end
  end
  if busy then return busy end
  for _, line in ipairs(ask.lines) do
    if line.limit then setAside(line.name, line.figure, size) end
    line.figure.risk = line.figure.risk + size
  end
  return { outcome = 'held', amount = told(size) }, ask.rates and takeRates(ask.rates)
end
local function answerAll()
  local answers = {}
  for i, ask in ipairs(given.asks) do
    local reply, entry = { outcome = 'late' }, nil
    if now <= given.deadline then
      reply, entry = answer(ask)
      reply.rates = ask.rates and leftOf(ask.rates, entry) or nil
    end
    for _, line in ipairs(ask.lines) do
      line.isRefused = line.isRefused or reply.outcome == 'exceeded' or reply.outcome == 'busy'
    end
    answers[i] = reply
  end
  return answers[1] and answers
end
-- Escrow ahead of requests: a sixteenth of what is left, divided among the live accounts, and none where anybody is refused.
local function grantAhead(line, live)
  local counter = line.counter
  if not line.limit or line.isRefused or line.ahead == ZERO or now > given.deadline or refusedIn(counter) ~= '' then return end
  if money.times(line.ahead, 16 * live) <= line.limit - counter.spent - counter.held then setAside(line.name, line.figure, line.ahead) end
end
local function perform(head, lines, others)
  head.booked = math.max(head.booked, given.booked)
  for _, line in ipairs(lines) do
    settle(line)
    if line.spend ~= ZERO then head.told = math.max(head.told, given.batch) end
  end
  for _, id in ipairs(given.ends) do
    local earlier = headOf(id)
    if earlier and earlier.lease > now then others = others - 1 end
    close(id, true)
  end
  for _, use in ipairs(given.uses) do
    addUse(use.id, 'requests', use.requests)
    addUse(use.id, 'tokens', use.tokens)
    fly(use.id, use.parallel)
  end
  local asks = answerAll()
  for _, line in ipairs(lines) do grantAhead(line, others + 1) end
  return { outcome = 'done', asks = asks }, others
end

local operations = {}
function operations.call()
  local id, number = given.account, given.number
  local function reply(of)
    of.now, of.calls = now, calls
    return of
  end
  local head = headOf(id)
  local isRepeated = head and head.number == number and head.state ~= 'closed' and head.state ~= 'marked'
  if not isRepeated then
    local last, why = head and head.number or 0, nil
    if number ~= last + 1 then why = 'behind' end
    if head and (head.state ~= 'live' or number <= last) or not head and number == 1 and given.deadline < now then why = 'closed' end
    if why then return reply({ outcome = 'stale', why = why }) end
  end
  head = head or { number = 0, state = 'live', lease = 0, booked = 0, told = 0 }
  local lines = readLines(head)
  local others = redis.call('ZCOUNT', prefix .. 'l', '(' .. nowText, '+inf') - (head.lease > now and 1 or 0)
  if not isRepeated then
    calls, head.number, head.lease = calls + 1, number, now + given.lease
    head.outcome = obstacle(lines)
    if not head.outcome then
      head.outcome, others = perform(head, lines, others)
      local set = {}
      for _, line in ipairs(lines) do
        local text = figureText(line.figure)
        if text ~= line.figure.text then set[#set + 1], set[#set + 2] = line.name, text end
      end
      later('HSET', key('a', id), set)
    end
    saveHead(id, head)
    later('ZADD', prefix .. 'l', int(head.lease), id)
    if given.isLast and head.outcome.outcome == 'done' then
      local figures = figuresOf(id, head)
      for _, line in ipairs(lines) do figures[line.name] = line.figure end
      forget(id, head, figures, false, 'finished')
    end
  end
  local answered, states, found = head.outcome, {}, {}
  if answered.outcome == 'done' then
    for i, line in ipairs(lines) do
      local spent, held = line.counter.spent or ZERO, line.counter.spent and line.counter.held or ZERO
      states[i] = { spent = told(spent), held = told(held), escrow = told(line.figure.escrow), isWanted = refusedIn(line.counter, id) ~= '' }
    end
    for _, other in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'l', '-inf', nowText, 'LIMIT', '0', int(MAX_ENDED + 1))) do
      if other ~= id and not ended[other] and #found < MAX_ENDED then found[#found + 1] = other end
    end
    answered = { outcome = 'done', asks = answered.asks, accounts = others + (head.lease > 0 and 1 or 0) }
    answered.lines, answered.ended = states[1] and states, found[1] and found
  end
  if not isRepeated then write() end
  return reply(answered)
end

function operations.mark()
  local id, head = given.account, headOf(given.account)
  if not head or head.lease == 0 then
    close(id, false)
    write()
    return { outcome = 'none', now = now }
  end
  if not given.isOwn and head.lease > now then return { outcome = 'live', now = now } end
  local names, absent, frozen, figures = {}, {}, {}, figuresOf(id, head)
  for name, figure in pairs(figures) do
    if not isNothing(figure.text, head.booked) then names[#names + 1] = name end
  end
  recall(names)
  for i, name in ipairs(names) do
    local figure, unbooked = figures[name], {}
    if not counters[name].spent then absent[#absent + 1] = name end
    for at, one in ipairs(figure.unbooked) do unbooked[at] = { batch = one.batch, spend = told(one.spend) } end
    frozen[i] = { counter = name, escrow = told(figure.escrow), risk = told(figure.risk), unbooked = unbooked[1] and unbooked }
  end
  if absent[1] and not given.isRebuild then return { outcome = 'absent', now = now, counters = absent } end
  head.state = 'marked'
  saveHead(id, head)
  write()
  return { outcome = 'marked', now = now, number = head.number, figures = frozen[1] and frozen }
end

function operations.finish()
  local head = headOf(given.account)
  if not head or head.state == 'marked' then close(given.account, given.isCharged) end
  write()
  return {}
end

function operations.load()
  local names, kept = {}, {}
  for i, of in ipairs(given.sums) do names[i] = of[1] end
  recall(names)
  for _, of in ipairs(given.sums) do
    local counter, spent = counters[of[1]], sum(of[2])
    if counter.spent == nil then
      counter.spent, kept[#kept + 1], kept[#kept + 2] = spent, int(math.max(now, counter.last) + KEEP), of[1]
    end
  end
  later('ZADD', prefix .. 'e', kept)
  write()
  return {}
end

function operations.read()
  local states = {}
  recall(given.counters)
  for i, name in ipairs(given.counters) do
    local counter = counters[name]
    states[i] = counter.spent and { spent = told(counter.spent), held = told(counter.held) } or false
  end
  return states
end

function operations.accounts()
  local all = {}
  for i, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'l', '-inf', given.isEnded and nowText or '+inf', 'LIMIT', '0', int(given.max))) do
    local head = headOf(id)
    all[i] = { account = id, number = head.number, unbooked = head.told > head.booked and head.told or 0 }
  end
  return { accounts = all[1] and all }
end

-- From the end: counters that leave are the first ones.
function operations.loaded()
  local names = redis.call('ZREVRANGE', prefix .. 'e', int(given.from), int(given.from + given.max))
  local next = #names > given.max and given.from + given.max or nil
  names[given.max + 1] = nil
  return { counters = names[1] and names, next = next }
end

-- An account is judged by the row that was read before the sums: they have its batches up to there, and its charge. Whether it has moved since.
local function auditAccount(id, names, expected)
  local head, row, isMoved = headOf(id), given.rows[id], false
  local figures = figuresOf(id, head, names)
  for _, name in ipairs(names) do
    local figure = figures[name]
    local hasSpend = figure and (figure.risk ~= ZERO or figure.unbooked[1] ~= nil)
    if figure and row == nil then isMoved = isMoved or hasSpend or figure.left > 0
    elseif figure and row.isClosed then
      if row.isCharged and head.lease > 0 then expected[name] = expected[name] - figure.risk end
    elseif figure and (figure.left > row.booked or head.lease == 0 and hasSpend) then isMoved = true
    elseif figure and isNothing(figure.text, row.booked) and head.lease > 0 then later('HDEL', key('a', id), name)
    elseif figure then
      for _, one in ipairs(figure.unbooked) do
        if one.batch > row.booked then expected[name] = expected[name] + one.spend end
      end
    end
  end
  return isMoved
end
function operations.audit()
  local names, expected, all, differences, moved = {}, {}, {}, {}, {}
  local function done() return { outcome = 'done', now = now, differences = differences[1] and differences, moved = moved[1] and moved } end
  if given.deadline < now then return done() end
  for i, of in ipairs(given.sums) do all[i] = of[1] end
  recall(all)
  for _, of in ipairs(given.sums) do
    if counters[of[1]].spent then names[#names + 1], expected[of[1]] = of[1], sum(of[2]) end
  end
  local ids = redis.call('ZRANGE', prefix .. 'l', '0', '-1')
  for _, id in ipairs(redis.call('ZRANGE', prefix .. 'f', '0', '-1')) do ids[#ids + 1] = id end
  -- So many unbooked amounts might not be exact as doubles.
  if #ids > 200 and money == NARROW then error(WIDE, 0) end
  for _, id in ipairs(ids) do
    if auditAccount(id, names, expected) then moved[#moved + 1] = id end
  end
  if moved[1] then return done() end
  for _, name in ipairs(names) do
    local counter = counters[name]
    if expected[name] ~= counter.spent then differences[#differences + 1] = { counter = name, by = told(expected[name] - counter.spent) } end
    counter.spent = expected[name]
  end
  write()
  return done()
end

local function wipe()
  for _, kind in ipairs({ 'l', 'f' }) do
    for _, id in ipairs(redis.call('ZRANGE', prefix .. kind, '0', '-1')) do redis.call('UNLINK', key('a', id)) end
  end
  for _, name in ipairs({ 'c', 'e', 'h', 'l', 'f', 'p' }) do redis.call('UNLINK', prefix .. name) end
  redis.call('DEL', present, before, KEYS[1])
end
function operations.begin()
  if given.epoch <= epoch then return { epoch = epoch } end
  wipe()
  redis.call('HSET', KEYS[1], 'layout', LAYOUT, 'epoch', int(given.epoch), 'now', nowText)
  return { epoch = given.epoch }
end
function operations.clear()
  wipe()
  return {}
end
return operations[operation]()
end

local isDone, answer = pcall(run, NARROW)
if not isDone and answer == WIDE then
  given = cjson.decode(ARGV[2])
  isDone, answer = pcall(run, wideMoney())
end
-- Errors keep the server's text: clients recognise a replica by its first word.
if not isDone then return { err = type(answer) == 'table' and answer.err or answer } end
if tonumber(meta[5] or '0') + SECOND <= now and meta[1] and operation ~= 'clear' then sweep() end
return cjson.encode(answer)
