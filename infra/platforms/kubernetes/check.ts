// The program that checks an installation: `helm test`, and the last step of the quickstart.
import { setTimeout as pause } from 'node:timers/promises';
import { CheckEnvironment } from '../../runtime/config/environments.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import { openApi } from '../../runtime/node/api-access.ts';
import { main, print } from '../../runtime/node/process.ts';
import { checkAdmission, makeTestCall } from './check-installation.ts';

main(async () => {
  const environment = readEnvironment(CheckEnvironment, process.env);
  const { CHECK_NAMESPACE: namespace, GATEWAY_URL: url, GATEWAY_MODEL: model, KEY_SECRET: secret } = environment;
  const { cluster, close } = await openApi(environment);
  const deps = { cluster, fetch, now: Date.now, pause };
  print(`admission answers: ${await checkAdmission(deps, namespace)}`);
  if (url !== undefined && model !== undefined && secret !== undefined) {
    const { reply, before, after } = await makeTestCall(deps, { url, model, secret });
    print(`model   ${model}\nreply   ${reply}\nspend   $${before} before, $${after} after this call`);
  }
  await close();
});
