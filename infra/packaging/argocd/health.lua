-- Health of a GatewayInstance, VirtualKey, User or Team for Argo CD (docs/operate/gitops.md): what its condition
-- Ready says.
local condition
for _, one in ipairs((obj.status or {}).conditions or {}) do
  if one.type == "Ready" then condition = one end
end

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = condition and condition.message or "it is being deleted" }
end
if condition == nil or (condition.observedGeneration or 0) < (obj.metadata.generation or 0) then
  return { status = "Progressing", message = "the reconciler has not looked at it yet" }
end
-- Blocked, expired and exhausted keys are as their specs say: nothing in Git has to change.
local converged = { Blocked = true, Expired = true, BudgetExceeded = true }
if condition.status == "True" or converged[condition.reason] then
  return { status = "Healthy", message = condition.message }
end
-- A gateway that starts, and members that wait for it.
local starting = { WorkloadNotReady = true, InstanceNotReady = true }
if starting[condition.reason] then
  return { status = "Progressing", message = condition.reason .. ": " .. condition.message }
end
return { status = "Degraded", message = condition.reason .. ": " .. condition.message }
