// `npm run bench`: how fast is it, against the least that could do the same? Every number comes with the one beside it.
import { cpus } from 'node:os';
import { benchAdmission } from './admission.ts';
import { benchGateway } from './gateway.ts';

const HELP = `npm run bench                  both, about two minutes
npm run bench -- admission     cold start of the bundled admission function to its first answered review, against bare Node
npm run bench -- gateway       requests per second and CPU per request with everything on, against a bare Hono and undici pass-through
npm run bench -- --help        this text

Rounds alternate between what is compared, and medians are told: on a machine that does other things too, look at the ratios.
`;

const BENCHES: ReadonlyMap<string, () => Promise<string>> = new Map([
  ['admission', benchAdmission],
  ['gateway', benchGateway],
]);

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
  for (const [name, bench] of BENCHES) {
    if (args.length === 0 || args.includes(name)) process.stdout.write(`\n${await bench()}\n`);
  }
}
