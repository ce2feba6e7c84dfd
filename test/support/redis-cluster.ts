// A Cluster of three nodes and a replica as a strict platform team runs it (redis-login.ts), whose slots move.
import { randomUUID } from 'node:crypto';
import type { RedisAddress } from '#core/ports/backends.ts';
import { freePort } from '../../infra/platforms/local/state/ports.ts';
import { eventually } from './eventually.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { documentedUser, newStrictLogin, type StrictLogin } from './redis-login.ts';
import { catchUp, commandTo } from './redis-sentinel.ts';

export interface TestCluster {
  /**
   * The first node of the list is away, the second one owns a single slot. Nodes announce addresses, and have a
   * certificate for `localhost`.
   */
  readonly connection: RedisAddress;
  /** The uid of an instance whose slot has a replica. */
  newUid(): string;
  /** Begins to move the slot of the instance from its node to the other one of two. */
  beginMove(uid: string): Promise<Move>;
  /** Kills the owner of nearly all slots; returns when its replica owns them. The previous owner becomes its replica. */
  failOver(): Promise<void>;
  /** The same, with a replica that has only the state of this moment; `then` happens before the owner is killed. */
  failOverToLateReplica(then: () => Promise<unknown>): Promise<void>;
  stop(): Promise<void>;
}

export interface Move {
  /** Moves this number of Redis keys. */
  moveKeys(count: number): Promise<void>;
  end(): Promise<void>;
}

type Node = TestRedis & { readonly tlsPort: number; readonly busPort: number };

export async function startCluster(): Promise<TestCluster> {
  const strict = await newStrictLogin('localhost');
  const nodes = await Promise.all([1, 2, 3, 4].map(() => startNode(strict)));
  const [first, small, other, second] = nodes as [Node, Node, Node, Node];
  // A failover needs the votes of most nodes that have slots.
  await commandTo(first, 'CLUSTER', 'ADDSLOTS', ...Array.from({ length: 16_382 }, (_, slot) => `${slot}`));
  await commandTo(small, 'CLUSTER', 'ADDSLOTS', '16382');
  await commandTo(other, 'CLUSTER', 'ADDSLOTS', '16383');
  for (const [at, node] of nodes.entries()) await commandTo(node, 'CLUSTER', 'SET-CONFIG-EPOCH', `${at + 1}`);
  for (const { tlsPort, busPort } of [small, other, second])
    await commandTo(first, 'CLUSTER', 'MEET', '127.0.0.1', `${tlsPort}`, `${busPort}`);
  for (const node of nodes) await eventually(() => infoOf(node), isComplete);
  await replicate(second, first);
  let [owner, replica] = [first, second];
  /** Slots that were moved to the other node. */
  const moved = new Set<string>();
  const swap = async (): Promise<void> => {
    for (const node of [replica, small, other])
      await eventually(
        () => ownersOf(node),
        (text) => text.includes(`${replica.connection.port}`) && !text.includes(`${owner.connection.port}`),
      );
    [owner, replica] = [replica, owner];
    await replica.start();
    await isLinked(replica);
    for (const node of nodes) await eventually(() => infoOf(node), isComplete);
  };
  return {
    connection: {
      type: 'redis',
      host: 'localhost',
      port: 1,
      otherServers: [{ host: 'localhost', port: small.tlsPort }],
      ...strict.login,
    },
    newUid: randomUUID,
    async beginMove(uid) {
      const slot = `${await commandTo(owner, 'CLUSTER', 'KEYSLOT', `{${uid}}:meta`)}`;
      const [from, to] = moved.has(slot) ? [other, owner] : [owner, other];
      await commandTo(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from));
      await commandTo(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to));
      const moveKeys = async (count: number): Promise<void> => {
        const left = (await commandTo(from, 'CLUSTER', 'GETKEYSINSLOT', slot, '1000')) as string[];
        // The key that calls declare is the last: without it, the node refuses each call anyway.
        const keys = left.sort((one, two) => Number(one.endsWith(':meta')) - Number(two.endsWith(':meta')));
        for (const key of keys.slice(0, count)) {
          const reply = await commandTo(from, 'MIGRATE', '127.0.0.1', `${to.tlsPort}`, key, '0', '5000');
          if (reply !== 'OK' && reply !== 'NOKEY') throw new Error(`MIGRATE: ${reply}`);
        }
      };
      return {
        moveKeys,
        async end() {
          await moveKeys(1000);
          for (const node of [to, from]) await commandTo(node, 'CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to));
          if (to === other) moved.add(slot);
          else moved.delete(slot);
        },
      };
    },
    async failOver() {
      await catchUp(owner, replica);
      await owner.kill();
      await swap();
    },
    async failOverToLateReplica(then) {
      await catchUp(owner, replica);
      await commandTo(replica, 'SAVE');
      await replica.kill();
      await then();
      await owner.kill();
      await replica.start();
      await swap();
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

const isComplete = (info: string): boolean =>
  info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:4') && info.includes('cluster_size:3');

async function startNode(strict: StrictLogin): Promise<Node> {
  const [tlsPort, busPort] = await freePorts();
  const server = await startRedis([
    ...strict.settings(tlsPort),
    ...['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000'],
    ...['--tls-cluster', 'yes', '--tls-replication', 'yes', '--cluster-replica-validity-factor', '0'],
    ...['--user', ...documentedUser('acl')],
  ]);
  return { ...server, tlsPort, busPort };
}

/** Redis before 7 has no setting for the port of the bus. */
async function freePorts(): Promise<[number, number]> {
  const port = await freePort(0, 'any');
  const bus = port + 10_000;
  return bus < 65_536 && (await freePort(bus, 'any')) === bus ? [port, bus] : freePorts();
}

const infoOf = async (node: Node): Promise<string> => `${await commandTo(node, 'CLUSTER', 'INFO').catch(String)}`;
const ownersOf = async (node: Node): Promise<string> => `${await commandTo(node, 'CLUSTER', 'SLOTS').catch(String)}`;
const idOf = async (node: Node): Promise<string> => `${await commandTo(node, 'CLUSTER', 'MYID')}`;

async function replicate(replica: Node, owner: Node): Promise<void> {
  await commandTo(replica, 'CLUSTER', 'REPLICATE', await idOf(owner));
  await isLinked(replica);
}

async function isLinked(replica: Node): Promise<void> {
  const link = async () => `${await commandTo(replica, 'INFO', 'replication').catch(String)}`;
  await eventually(link, (info) => info.includes('master_link_status:up'));
}
