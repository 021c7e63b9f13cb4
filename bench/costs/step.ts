/** What every kind of observation is measured with. */
export type StepContext = {
  /** What is drawn is drawn from it. */
  seed: number;
  /** For data and homes; removed by whoever made it. */
  folder: string;
  /** Asked between two loads: the one that runs ends first. */
  signal: AbortSignal;
  /** Everything tiny: that it runs is what is to be seen, not what it costs. */
  brief: boolean;
};
