// The number of requests in flight, as a metric by which gateways are scaled.
import type { GatewayDependencies } from '../deps.ts';

/** Counts a request that begins. The returned function counts its end. */
export type CountInFlight = () => () => void;

export function createInFlightCounter({ metrics }: Pick<GatewayDependencies, 'metrics'>): CountInFlight {
  let requests = 0;
  const change = (by: number) => {
    requests += by;
    metrics.set('gateway_operator_requests_in_flight', requests);
  };
  // A gateway without requests has the metric too: an autoscaler takes an absent metric for an error.
  change(0);
  return () => {
    change(1);
    return () => change(-1);
  };
}
