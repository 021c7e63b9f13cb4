import { useLocation } from "preact-iso";
import { packText } from "./packed-text.ts";

/** Leads to the query page, with a text for its editor. */
export function useOpenQuery(database: string): (text: string) => void {
  const { route } = useLocation();
  return (text) => {
    void packText(text).then((packed) => route(`/ui/query?db=${encodeURIComponent(database)}#q=${packed}`));
  };
}
