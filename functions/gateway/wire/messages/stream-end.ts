// Ends of streamed messages that the upstream did not send: an error, or a cut at the reservation.
import { type Failure, toReply } from '#core/failure/failure.ts';
import { member } from '#core/json/json.ts';
import type { EndWriter, ShownError } from '../codec.ts';
import { anthropicErrors } from '../dialects/error-format.ts';
import { toNamedEvent } from '../streams/sse.ts';

function toFailureEvent(failure: Failure): Uint8Array {
  const { error, status } = toReply(failure);
  return toNamedEvent('error', anthropicErrors.toBody(error, status));
}

/** The event of a provider's error. Without a type, it is an error of the API. */
function toErrorEvent({ message, type, code }: ShownError): Uint8Array {
  const shown = { type: type ?? code ?? 'api_error', message, code: code === type ? undefined : code };
  return toNamedEvent('error', { error: shown });
}

/**
 * The end of a stream. At its reservation, open blocks are closed, and the message ends as at the client's own limit.
 */
export function createEndWriter(): EndWriter {
  const open = new Set<unknown>();
  return {
    record: ({ event }) => {
      const [type, index] = [member(event, 'type'), member(event, 'index')];
      if (type === 'content_block_start') open.add(index);
      if (type === 'content_block_stop') open.delete(index);
    },
    toFailureEvent,
    toErrorEvent,
    toCutEvents: (_, { output }) => [
      ...[...open].map((index) => toNamedEvent('content_block_stop', { index })),
      toNamedEvent('message_delta', {
        delta: { stop_reason: 'max_tokens', stop_sequence: null },
        usage: { output_tokens: output },
      }),
      toNamedEvent('message_stop', {}),
    ],
  };
}
