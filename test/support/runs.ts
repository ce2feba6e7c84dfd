// The number of random runs of a property.

/**
 * All runs in `TEST_ALL=1 npm test`, which CI runs; a fifth, with other random values each time, in `npm test` and `npm
 * run check`.
 */
export const runs = (all: number): number => (process.env.TEST_ALL ? all : Math.ceil(all / 5));
