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

const HELP = `Removes the operator's webhooks and finalizers from the cluster in the current context.

kubectl gateway uninstall                    instances, keys, users and teams stay, and gateways continue serving.
                                             Remove the operator's own Deployments first, or the reconciler adds its finalizers again
kubectl gateway uninstall --objects=Delete   deletes all of them first, and waits while a running operator cleans up
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
