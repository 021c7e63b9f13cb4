/**
 * Gathers calls that are made while others are under way, and makes one of them: a database that is asked by many gets
 * few statements, and one that is asked by one answers at once.
 */
export class Batch<In, Out> {
  readonly #run: (items: readonly In[]) => Promise<readonly Out[]>;
  readonly #maxItems: number;
  #waiting: { item: In; settle: PromiseWithResolvers<Out> }[] = [];
  #isRunning = false;

  /** `run` answers each item at its place; when it rejects, so do all of them. */
  constructor(run: (items: readonly In[]) => Promise<readonly Out[]>, maxItems: number) {
    this.#run = run;
    this.#maxItems = maxItems;
  }

  add(item: In): Promise<Out> {
    const settle = Promise.withResolvers<Out>();
    this.#waiting.push({ item, settle });
    if (!this.#isRunning) void this.#drain();
    return settle.promise;
  }

  async #drain(): Promise<void> {
    this.#isRunning = true;
    // What is added in this turn of the loop goes together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const calls = this.#waiting.splice(0, this.#maxItems);
      try {
        const answers = await this.#run(calls.map(({ item }) => item));
        for (const [i, { settle }] of calls.entries()) settle.resolve(answers[i] as Out);
      } catch (error) {
        for (const { settle } of calls) settle.reject(error);
      }
    }
    this.#isRunning = false;
  }
}
