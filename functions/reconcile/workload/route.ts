// The desired HTTPRoute or Ingress of an instance, complete, and the address at which clients reach it.
import { gatewayName } from '#core/keys/object-names.ts';
import { MAX_REQUEST_TIME } from '#core/ledger/settlement.ts';
import { parseDuration } from '#core/money/duration.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import type { LiveWorkloadObject } from './live-object.ts';
import { type RouteName, toWorkloadObject } from './workload-objects.ts';

/** The port of the Service of a gateway. */
const SERVICE_PORT = 80;
/** Seconds that a proxy waits longer than the gateway: the gateway's own error reaches the client. */
const LONGER = 30;

export interface RequestedRoute {
  readonly objectKind: RouteName;
  readonly hosts: ReadonlyArray<string>;
  /** The address for clients. */
  readonly url: string;
}

/** The workload object that the spec asks for; undefined: none. */
export function requestedRoute({ spec }: GatewayInstance): RequestedRoute | undefined {
  const { httpRoute, ingress } = spec;
  const toRoute = (objectKind: RouteName, hosts: ReadonlyArray<string>, url = `https://${hosts[0]}`) => ({
    objectKind,
    hosts,
    url,
  });
  if (httpRoute !== undefined) return toRoute('HTTPRoute', httpRoute.hostnames, httpRoute.url);
  return ingress && toRoute('Ingress', [ingress.host], ingress.url);
}

/** Whether the live HTTPRoute or Ingress has all these host names. */
export function hasHosts({ spec: { hostnames, rules } }: LiveWorkloadObject, hosts: ReadonlyArray<string>): boolean {
  const live = new Set([...hostnames, ...rules.map(({ host }) => host)]);
  return hosts.every((host) => live.has(host));
}

/** Undefined if the spec asks for none. */
export function desiredRoute(instance: GatewayInstance, version: string): KubeObject | undefined {
  const { httpRoute, ingress } = instance.spec;
  if (httpRoute !== undefined)
    return toWorkloadObject('HTTPRoute', { instance, version }, httpRouteSpec(instance, httpRoute));
  const annotations = ingress?.annotations;
  return ingress && toWorkloadObject('Ingress', { instance, version, annotations }, ingressSpec(instance, ingress));
}

function httpRouteSpec(
  { metadata, spec }: GatewayInstance,
  { parentRefs, hostnames, timeouts }: NonNullable<GatewayInstance['spec']['httpRoute']>,
): object {
  const total = Math.min(MAX_REQUEST_TIME, parseDuration(spec.routing.timeouts.total) ?? MAX_REQUEST_TIME);
  const rule = {
    matches: [{ path: { type: 'PathPrefix', value: '/' } }],
    backendRefs: [{ name: gatewayName(metadata.name), port: SERVICE_PORT }],
    ...(timeouts === 'None' ? {} : { timeouts: { request: `${Math.ceil(total / 1000) + LONGER}s` } }),
  };
  return { parentRefs, hostnames, rules: [rule] };
}

function ingressSpec(
  { metadata }: GatewayInstance,
  { ingressClassName, host, tlsSecretName }: NonNullable<GatewayInstance['spec']['ingress']>,
): object {
  const service = { name: gatewayName(metadata.name), port: { number: SERVICE_PORT } };
  return {
    ...(ingressClassName === undefined ? {} : { ingressClassName }),
    rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service } }] } }],
    ...(tlsSecretName === undefined ? {} : { tls: [{ hosts: [host], secretName: tlsSecretName }] }),
  };
}
