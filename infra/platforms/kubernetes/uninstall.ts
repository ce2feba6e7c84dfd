// The program that removes the operator from a cluster: a Job (uninstall.yaml), or `KUBECONFIG=… node
// infra/platforms/kubernetes/uninstall.ts`.
import { setTimeout as pause } from 'node:timers/promises';
import { UninstallEnvironment } from '../../runtime/config/environments.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import { openApi } from '../../runtime/node/api-access.ts';
import { main, print } from '../../runtime/node/process.ts';
import { removeOperator } from './remove-operator.ts';

main(async () => {
  const environment = readEnvironment(UninstallEnvironment, process.env);
  const { cluster, close } = await openApi(environment);
  await removeOperator({ cluster, print, now: Date.now, pause }, environment.UNINSTALL_OBJECTS);
  await close();
});
