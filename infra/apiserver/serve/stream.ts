// How do the events of a watch reach the client?
import type { ServerResponse } from 'node:http';
import { encode, type Representation } from '../read/representation.ts';
import type { Watch } from '../read/watch.ts';

/** A client that does not read for so long is cut off; it resumes from the last resourceVersion it saw. */
const maxUnsentBytes = 64 * 1024 * 1024;

/** One JSON object a line (YAML documents where that was asked), until the client leaves, the time is up, or the cluster stops. */
export function stream(
  response: ServerResponse,
  { watch, form }: { watch: Watch; form: Representation },
  signal: AbortSignal,
): void {
  const contentType = form.encoding === 'application/json' ? form.encoding : `${form.encoding};stream=watch`;
  response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-cache, private' });
  response.flushHeaders();
  const stop = watch.run(
    (event) => {
      if (response.writableLength > maxUnsentBytes) response.destroy();
      else response.write(form.encoding === 'application/json' ? encode(event, form) : `---\n${encode(event, form)}`);
    },
    () => response.end(),
  );
  if (signal.aborted) stop();
  signal.addEventListener('abort', () => {
    stop();
    response.end();
  });
}
