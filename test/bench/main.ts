// `npm run bench`: each number next to that of the smallest program that does the same.
import { cpus } from 'node:os';
import { benchApply } from './admission/apply.ts';
import { benchLookups } from './admission/lookups.ts';
import { benchThroughput } from './admission/throughput.ts';
import { benchAdmission } from './admission.ts';
import { benchDeploy } from './deploy.ts';
import { benchEngines } from './engines.ts';
import { benchFaults, benchSettlementDelays, benchSingleFaults } from './faults.ts';
import { benchGateway, benchRoutes } from './gateway.ts';
import { benchHostile } from './hostile.ts';
import { benchLarge, benchLargeObjects } from './large.ts';
import { benchLedger } from './ledger.ts';
import { benchMemory } from './memory.ts';
import { benchMillion } from './million.ts';
import { benchFifty } from './resync/fifty.ts';
import { benchRealResync, benchResync } from './resync.ts';
import { benchTenMillion } from './ten-million.ts';
import { benchTriggers } from './triggers.ts';

const HELP = `npm run bench                  admission, gateway and ledger, about fifteen minutes
npm run bench -- admission     time from a cold start of the bundle to its first answered review, against bare Node; reviews per second, against an
                               echo of the same JSON; look-ups with ten and a hundred thousand keys; the time that admission adds to an apply on a
                               real API server (this part needs KUBEBUILDER_ASSETS and kubectl)
npm run bench -- hostile       ten thousand hostile bodies to the admission function; about a minute; only by name
npm run bench -- gateway       requests per second, CPU per request and added latency with all features on, against a bare pass-through with Hono
                               and undici; calls to Redis, bodies of 300 KB, two and four gateways; with the store in memory, and with a
                               redis-server where there is one; about eleven minutes (BENCH_ONLY=streamed: only workloads with this in their
                               name and store, such as "1 connection, Redis"; BENCH_ROUNDS=2: fewer rounds; BENCH_PROFILE=DIR: profiles of the
                               gateway's CPU)
npm run bench -- routes        the same for each route that spends, with the store in memory, and 512 streams at the same time, none of which may be cut; about
                               six minutes; only by name
npm run bench -- million       a million requests to the gateway and to the bare pass-through: memory, and stalls of their event loops by cause;
                               about six minutes; only by name (BENCH_REQUESTS=100000: fewer requests; BENCH_PROFILE=DIR)
npm run bench -- memory        memory of a gateway with its Pod's options and limit, in a cgroup if this machine allows one: the largest
                               bodies and the most streams that it accepts; about ten minutes; only by name (BENCH_LIMITS=512,1024: other limits,
                               in MiB; BENCH_STREAMS=200,400: other numbers of streams)
npm run bench -- ledger        reserve and settle on each store, against bare round trips; time until a wiped store serves again; rows per
                               second into PostgreSQL; about a minute (Redis and Upstash need a redis-server)
npm run bench -- triggers      time from apply to a usable key, by each trigger: admission's trigger (Node on both clusters, Workers), Knative's
                               ApiServerSource; minutes; only by name
npm run bench -- resync        resyncs over a hundred thousand keys: nothing changed, some have spent, a thousand are new; then over ten thousand on a real
                               API server (needs KUBEBUILDER_ASSETS; resync-real is this part alone); about five minutes; only by name
                               (BENCH_KEYS=10000: fewer keys)
npm run bench -- fifty         fifty instances with a database each; one database hangs and one refuses connections: how long the others wait;
                               half a minute; only by name
npm run bench -- faults        a minute of kill -9 in random order, with six seeds, and the errors in the money after it; then each fault alone:
                               time until it is reported, and until the ends of requests reach the store; about ten minutes; only by name
                               (FAULT_SEEDS=1-20 FAULT_SECONDS=10: other seeds and seconds)
npm run bench -- engines       the promise suites, the walk and a minute of faults on each Redis, Valkey and PgBouncer that this machine has: a Redis
                               Cluster whose slot moves, Sentinels, TLS with client certificates, failovers, a promoted standby of
                               PostgreSQL; about ten minutes for each; only by name (FAULT_SECONDS=10: shorter; FAULT_SEEDS=3-5: other seeds;
                               BENCH_ONLY=walk: only rows with this in their engine or in what ran; VALKEY, PGBOUNCER_NEWER, REDIS_OLDEST: more
                               engines, which test/support/unpack-engines.sh unpacks)
npm run bench -- ten-million   blocks that each statement touches with ten million ledger rows and a million keys; several minutes and 8 GB of disk;
                               only by name
npm run bench -- large         a million VirtualKeys as rows: twenty million ledger rows from several processes without HTTP (rows a second, bytes
                               a row, dollars above a limit and lost), then one gateway with random key values, then a resync of a hundred
                               thousand VirtualKeys on a real API server; at most an hour and 20 GB of disk, which it checks first; needs a
                               redis-server; only by name (BENCH_ROWS=1000000 BENCH_KEYS=100000: smaller)
npm run bench -- deploy        time until each function gives its first answer, against bare Node and a bare Worker; memory and CPU of idle
                               functions; size of the image; about three minutes; only by name
npm run bench -- --help        print this text

Rounds alternate between the compared programs, and tables show medians: on a busy machine, look at the ratios.
`;

const BENCHES: ReadonlyMap<string, ReadonlyArray<() => Promise<string>>> = new Map([
  ['admission', [benchAdmission, benchThroughput, benchLookups, benchApply]],
  ['deploy', [benchDeploy]],
  ['engines', [benchEngines]],
  ['faults', [benchFaults, benchSingleFaults, benchSettlementDelays]],
  ['gateway', [() => benchGateway()]],
  ['routes', [benchRoutes]],
  ['hostile', [benchHostile]],
  ['large', [benchLarge, benchLargeObjects]],
  ['ledger', [benchLedger]],
  ['resync', [benchResync, benchRealResync]],
  ['resync-real', [benchRealResync]],
  ['fifty', [benchFifty]],
  ['triggers', [benchTriggers]],
  ['memory', [benchMemory]],
  ['million', [benchMillion]],
  ['ten-million', [benchTenMillion]],
]);
const USUAL = ['admission', 'gateway', 'ledger'];

const args = process.argv.slice(2);
if (args.includes('--help')) process.stdout.write(HELP);
else if (args.some((arg) => !BENCHES.has(arg))) {
  process.stderr.write(HELP);
  process.exitCode = 2;
} else {
  const [cpu] = cpus();
  process.stdout.write(
    `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${cpus().length} × ${cpu?.model}\n`,
  );
  for (const name of args.length === 0 ? USUAL : args) {
    for (const bench of BENCHES.get(name) ?? []) process.stdout.write(`\n${await bench()}\n`);
  }
}
