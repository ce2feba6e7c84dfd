#!/usr/bin/env node
// The plugin of kubectl: `kubectl gateway uninstall` does from a person's machine what the Job of uninstall.yaml does.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { removeOperator } from '../../platforms/kubernetes/remove-operator.ts';
import { main, print } from '../../runtime/node/process.ts';

const HELP = `Takes the operator's hold from the cluster of the current context: webhooks, then finalizers.

kubectl gateway uninstall                    instances, keys, users and teams stay, and gateways serve on.
                                             Remove the operator's own Deployments first, or reconcile puts its finalizers back
kubectl gateway uninstall --objects=Delete   deletes all of them first, and lets a running operator clean up behind them
`;

main(async () => {
  const options = { objects: { type: 'string', default: 'Keep' }, help: { type: 'boolean' } } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const { objects } = values;
  if (positionals.join(' ') !== 'uninstall' || values.help || (objects !== 'Keep' && objects !== 'Delete')) {
    process.stderr.write(HELP);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const { KUBECONFIG: file = join(homedir(), '.kube/config') } = process.env;
  const { request, close } = await createKubeconfigTransport(file);
  await removeOperator({ cluster: createCluster({ request }), print, now: Date.now, pause }, objects);
  await close();
});
