// Exact money in the script: plain numbers while all are small, else two parts of nine digits (LEDGER 4).

/**
 * Used by script.ts, which starts over with `isWide` when an amount is too big for a number, before anything is written. A Lua number is exact
 * below 2^53. A call changes a counter by at most some hundred amounts of ten thousand dollars, and a counter and its limit
 * start below three million: neither they nor their differences come near it.
 */
export const MONEY = `
local BASE, MAX_AMOUNT, MAX_SUM = 1000000000, 1e13, 3e15
local amount, sum, shown, lineOf, ZERO
local function checked(counter, max)
  if not isWide and (counter.spent > max or counter.spent < -max or counter.held > max) then error(WIDE, 0) end
end
if isWide then
  local parts = {}
  local function of(high, low) return setmetatable({ high, low }, parts) end
  parts.__add = function(a, b)
    local high, low = a[1] + b[1], a[2] + b[2]
    if low >= BASE then return of(high + 1, low - BASE) end
    return of(high, low)
  end
  parts.__sub = function(a, b)
    local high, low = a[1] - b[1], a[2] - b[2]
    if low < 0 then return of(high - 1, low + BASE) end
    return of(high, low)
  end
  parts.__lt = function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end
  parts.__le = function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] <= b[2]) end
  ZERO = of(0, 0)
  amount = function(digits)
    local sign, number = string.match(digits, '^(%-?)(%d+)$')
    if number == nil or #number > 21 then error('not an amount: ' .. digits) end
    local high, low = tonumber(string.sub(number, 1, -10)) or 0, tonumber(string.sub(number, -9))
    if sign == '' then return of(high, low) end
    return ZERO - of(high, low)
  end
  sum = amount
  shown = function(a)
    local high, low, sign = a[1], a[2], ''
    if high < 0 then
      sign, high = '-', -high
      if low > 0 then high, low = high - 1, BASE - low end
    end
    if high == 0 then return sign .. string.format('%d', low) end
    return sign .. string.format('%d%09d', high, low)
  end
  lineOf = function(counter)
    return string.format('%s %s %s %d', counter.window, shown(counter.spent), shown(counter.held), counter.holds)
  end
else
  ZERO = 0
  amount = function(digits)
    local number = tonumber(digits)
    if number == nil or number > MAX_AMOUNT or number < -MAX_AMOUNT then error(WIDE, 0) end
    return number
  end
  sum = function(digits)
    local number = tonumber(digits)
    if number == nil or number > MAX_SUM or number < -MAX_SUM then error(WIDE, 0) end
    return number
  end
  shown = millis
  lineOf = function(counter)
    checked(counter, 2 * MAX_SUM)
    return string.format('%s %d %d %d', counter.window, counter.spent, counter.held, counter.holds)
  end
end
`;
