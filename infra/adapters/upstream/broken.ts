// Failed calls in the port's terms: unsent, refused, timeout or broken.
import { UpstreamBroke } from '#core/ports/serving.ts';

const TIMEOUTS: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);
const REFUSALS: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_INVALID_ARG',
  'ERR_INVALID_URL',
]);

export function toBroken(error: unknown): UpstreamBroke {
  if (error instanceof UpstreamBroke) return error;
  const code = codeOf(error);
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || isConnecting(error)) {
    return new UpstreamBroke('unsent', `the upstream failed: ${code}`, { cause: error });
  }
  const how = TIMEOUTS.has(code) ? 'timeout' : REFUSALS.has(code) ? 'refused' : 'broken';
  return new UpstreamBroke(how, `the upstream failed: ${code || 'unknown'}`, { cause: error });
}

/** Whether the system gave up before there was a connection. */
function isConnecting(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'connect' && codeOf(error) === 'ETIMEDOUT';
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Several addresses were tried; they rarely fail for different reasons.
  return error instanceof AggregateError ? codeOf(error.errors[0]) : error.name;
}
