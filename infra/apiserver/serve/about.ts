// What does the cluster say about itself?
import type { JsonObject } from '../schema/json.ts';

const notForProduction =
  'This is the embedded cluster of the gateway operator: an API server for trying and testing only. It runs no Pods, enforces no RBAC and has one token. Never use it in production.';

/** `/version`. The number is the one whose `kubectl`, and the minors on either side, it is held to: those warn of no skew. */
export function version(): JsonObject {
  return {
    major: '1',
    minor: '32',
    gitVersion: 'v1.32.0+gateway-operator-embedded',
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node-${process.version}`,
    compiler: 'node',
    platform: `${process.platform}/${process.arch}`,
    note: notForProduction,
  };
}

/** `/`: what there is to ask, and what this is. */
export function root(groupVersions: readonly string[]): JsonObject {
  const groups = groupVersions.filter((one) => one.includes('/')).map((one) => `/apis/${one}`);
  return {
    note: notForProduction,
    paths: ['/api', '/api/v1', '/apis', ...groups, '/healthz', '/livez', '/openapi/v3', '/readyz', '/version'],
  };
}
