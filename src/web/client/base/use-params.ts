import { useLocation } from "preact-iso";
import { useCallback, useMemo } from "preact/hooks";
import { readParams, writeParams, type Params, type ParamValues } from "./params.ts";

type Update<P extends Params> = (
  changes: Partial<ParamValues<P>>,
  /** `replace` for what is typed or dragged; else the way back leads to the value before. */
  how?: "push" | "replace",
) => void;

/** The parameters of the page's address, and how to change some of them. `params` must be one value for all draws. */
export function useParams<P extends Params>(params: P): [ParamValues<P>, Update<P>] {
  const { url, route } = useLocation();
  const search = new URL(url, location.origin).search;
  const values = useMemo(() => readParams(params, new URLSearchParams(search)), [params, search]);
  const update = useCallback<Update<P>>(
    (changes, how = "push") => {
      // What the address is now, not when this was drawn: two changes may come between draws.
      const next = writeParams(params, new URLSearchParams(location.search), changes).toString();
      const address = `${location.pathname}${next === "" ? "" : `?${next}`}${location.hash}`;
      if (address !== location.pathname + location.search + location.hash) route(address, how === "replace");
    },
    [params, route],
  );
  return [values, update];
}
