// The program that applies the objects of the quickstart. Their CRDs and the webhook have just been created too, so it
// repeats an apply that is rejected.
import { setTimeout as pause } from 'node:timers/promises';
import { kinds } from '#crds/kinds/kinds.ts';
import { ApplyEnvironment } from '../../runtime/config/environments.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import { openApi } from '../../runtime/node/api-access.ts';
import { main, print } from '../../runtime/node/process.ts';
import { retry } from './retry.ts';

main(async () => {
  const environment = readEnvironment(ApplyEnvironment, process.env);
  const { cluster, close } = await openApi(environment);
  for (const object of environment.OBJECTS) {
    const { kind, metadata } = object;
    const resource = kinds.find((one) => one.kind === kind);
    if (resource === undefined)
      throw new Error(`OBJECTS: ${kind} is none of ${kinds.map((one) => one.kind).join(', ')}`);
    await retry(
      async () => {
        const written = await cluster.apply(resource, object);
        if (!written.ok) throw new Error(written.message);
      },
      { now: Date.now, pause },
    );
    print(`applied ${kind} ${metadata.namespace}/${metadata.name}`);
  }
  await close();
});
