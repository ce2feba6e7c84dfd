// How does the script count money exactly? In two parts of nine digits, because a Lua number rounds from 2^53 on (LEDGER 3).

/** Used by script.ts: needs nothing. */
export const MONEY = `
-- Money.
local BASE = 1000000000
local ZERO = { 0, 0 }
local function parse(digits)
  local sign, number = string.match(digits, '^(%-?)(%d+)$')
  if number == nil or #number > 21 then error('not an amount: ' .. digits) end
  local high, low = tonumber(string.sub(number, 1, -10)) or 0, tonumber(string.sub(number, -9))
  if sign == '' then return { high, low } end
  if low == 0 then return { -high, 0 } end
  return { -high - 1, BASE - low }
end
local function add(a, b)
  local high, low = a[1] + b[1], a[2] + b[2]
  if low >= BASE then return { high + 1, low - BASE } end
  return { high, low }
end
local function minus(a, b)
  local high, low = a[1] - b[1], a[2] - b[2]
  if low < 0 then return { high - 1, low + BASE } end
  return { high, low }
end
local function less(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end
local function digits(a)
  local high, low, sign = a[1], a[2], ''
  if high < 0 then
    sign, high = '-', -high
    if low > 0 then high, low = high - 1, BASE - low end
  end
  if high == 0 then return sign .. string.format('%.0f', low) end
  return sign .. string.format('%.0f%09.0f', high, low)
end
`;
