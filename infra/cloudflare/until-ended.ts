// When has a response been sent, or its client left? What a Worker must still do follows then.

/** The same bytes; `ended` resolves when they have been read, were not wanted any more, or broke off. */
export function untilEnded(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal,
): { readonly body: ReadableStream<Uint8Array> | null; readonly ended: Promise<void> } {
  if (body === null) return { body, ended: Promise.resolve() };
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => end(), { once: true });
  const reader = body.getReader();
  const forwarded = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        controller.close();
      } catch (error) {
        controller.error(error);
      }
      end();
    },
    async cancel(why) {
      end();
      await reader.cancel(why);
    },
  });
  return { body: forwarded, ended };
}
