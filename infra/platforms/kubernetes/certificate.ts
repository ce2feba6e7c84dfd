// The certificate that the process shows: the mounted one, and its successor as soon as the kubelet has put it there.
import { readFileSync, watchFile } from 'node:fs';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Log } from '#core/ports/telemetry.ts';
import type { RunningServer, Tls } from '../../runtime/node/serve.ts';

/** Milliseconds between two looks at the file. Mounted Secrets are links that change: only looking finds that out. */
const LOOK_EVERY = 2_000;

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

export function readCertificate({ cert, key }: CertificateFiles): Tls {
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

/** Certificates are renewed while processes run. One that cannot be used is logged, and the old one stays. */
export function followCertificate(files: CertificateFiles, served: Pick<RunningServer, 'renew'>, log: Log): void {
  let shown = '';
  for (const file of Object.values(files)) {
    watchFile(file, { interval: LOOK_EVERY, persistent: false }, () => {
      try {
        const next = readCertificate(files);
        // Both files are looked at, and change together.
        if (shown === next.cert) return;
        served.renew(next);
        shown = next.cert;
        log.info('certificate renewed', { file });
      } catch (error) {
        log.warn('certificate not renewed', { file, why: reasonOf(error) });
      }
    });
  }
}
