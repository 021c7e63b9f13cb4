import { parser } from "@prometheus-io/lezer-promql";

/** What a PromQL expression reads. */
type Reads = {
  /** Each metric with the labels that are asked of it. */
  selectors: { metric: string; labels: string[] }[];
  /** Labels that it groups or matches by. */
  groupings: string[];
};

const strict = parser.configure({ strict: true });

/** Reads an expression by the grammar of Prometheus; a panel's may have Grafana's range. Throws where it is no PromQL. */
export function readsOf(expression: string): Reads {
  const text = expression.replaceAll("$__rate_interval", "5m");
  const reads: Reads = { selectors: [], groupings: [] };
  strict.parse(text).iterate({
    enter: ({ name, from, to, node }) => {
      const said = text.slice(from, to);
      if (name === "Identifier") reads.selectors.push({ metric: said, labels: [] });
      else if (name === "LabelName" && node.parent?.name === "GroupingLabels") reads.groupings.push(said);
      else if (name === "LabelName") reads.selectors.at(-1)?.labels.push(said);
    },
  });
  return reads;
}
