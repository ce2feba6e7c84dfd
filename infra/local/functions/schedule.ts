// When does the cron run? What PingSource is on Knative and a CronJob on Kubernetes.

/** Calls `run` every `seconds`; a run that takes longer is not overtaken. Answers how to stop, which waits for the run under way. */
export function startSchedule(seconds: number, run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= run().finally(() => {
      running = undefined;
    });
  }, seconds * 1000);
  return async () => {
    clearInterval(timer);
    await running;
  };
}
