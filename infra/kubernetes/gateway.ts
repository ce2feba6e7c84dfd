// The gateway function as a Node process: one instance, everything it needs mounted as files, no access to the API server.
import { createMountedCredentials, createMountedFile } from '#adapters/mounted.ts';
import { createUpstream } from '#adapters/upstream/undici.ts';
import { GatewayEnvironment } from '../config/environments.ts';
import { readEnvironment } from '../config/variable.ts';
import { openGateway } from '../node/gateway.ts';
import { main, openFunction } from '../node/process.ts';
import { readMounts, toSnapshot } from './mounts.ts';
import { keepMaintained } from './own-store.ts';

main(async () => {
  const environment = readEnvironment(GatewayEnvironment, process.env);
  const { run, ...parts } = await openFunction('gateway', environment);
  const { now } = parts.clock;
  const upstream = createUpstream();
  const mounts = readMounts(environment);
  const gateway = openGateway({
    ...parts,
    ...mounts,
    folder: environment.OUTBOX_DIR,
    snapshots: createMountedFile(environment.SNAPSHOT_FILE, now, toSnapshot),
    credentials: createMountedCredentials(environment.CREDENTIALS_DIR, now),
    upstream,
  });
  const stopMaintaining = mounts.storeConnection.type === 'memory' ? keepMaintained(gateway.flush, parts) : () => {};
  await run(gateway, async () => {
    stopMaintaining();
    await gateway.close();
    await upstream.close();
  });
});
