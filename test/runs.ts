// How often a property is tried with random values.

/** All of it in `TEST_ALL=1 npm test`, which CI runs; a fifth, of other random values each time, in `npm test` and `npm run check`. */
export const runs = (all: number): number => (process.env.TEST_ALL ? all : Math.ceil(all / 5));
