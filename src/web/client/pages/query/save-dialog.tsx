import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { toast } from "../../base/announce.ts";
import { requestJson } from "../../base/api.ts";
import { queryClient } from "../../base/query-client.ts";
import { useMutation } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import type { KeptText } from "./kept-queries.tsx";

type SaveDialogProps = { kept: KeptText; title: string; onSaved: (name: string) => void; onClose: () => void };

export function SaveDialog({ kept, title, onSaved, onClose }: SaveDialogProps): JSX.Element {
  const [name, setName] = useState(title);
  const [shared, setShared] = useState(false);
  const save = useMutation(async () => {
    await requestJson("/v1/saved-queries", { json: { ...kept, name: name.trim(), shared } });
    await queryClient.invalidateQueries({ queryKey: ["saved-queries"] });
    return name.trim();
  });
  const submit = async (): Promise<void> => {
    const saved = await save.run(undefined);
    if (saved === undefined) return;
    toast(`Saved as ${saved}`, "good");
    onSaved(saved);
  };
  return (
    <Dialog
      title="Save the query"
      onClose={onClose}
      actions={
        <Button
          look="primary"
          isBusy={save.isPending}
          isDisabled={name.trim() === ""}
          reason="It needs a name."
          onClick={() => void submit()}
        >
          Save
        </Button>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "") void submit();
        }}
      >
        <Field label="Name" value={name} onInput={setName} isRequired />
        <label class="check">
          <input type="checkbox" checked={shared} onChange={(event) => setShared(event.currentTarget.checked)} />
          <span>Share it with everybody who may use the database {kept.database}</span>
        </label>
      </form>
      {save.error !== null && <ErrorBox title="It was not saved." error={save.error} />}
    </Dialog>
  );
}
