// Entries of a session file (version 3) as writes of Pi's newer sessions, by the
// rules of Pi's own import of such files (harness/session/jsonl/legacy-v3.js in
// pi-agent-core 0.87), but with the ids as they are: settings, names and labels
// are values there and not entries, and a compaction holds the messages that it
// keeps.
import {
  branchTip, createBranchSummaryMessage, createCompactionSummaryMessage, deleteValue, entryLabel, insertEntry, sessionName, setValue,
} from "@earendil-works/pi-agent-core";

const main = branchTip("main");

export class Conversion {
  leaf = null;
  aliases = new Map(); // entries that are none in Pi: the one that stands in their place
  #seen = new Map(); // parent and message of a context, of each entry as it was

  // writes are those of one entry.
  writes(entry) {
    const parentId = this.#entry(entry.parentId);
    this.#seen.set(entry.id, { parentId: entry.parentId, message: messageOf(entry) });
    const kept = this.#kept(entry, parentId);
    if (kept !== undefined) {
      this.leaf = entry.id;
      return [insertEntry({ id: entry.id, parentId, ...kept })];
    }
    this.aliases.set(entry.id, parentId);
    this.leaf = entry.type === "leaf" ? this.#entry(entry.targetId) : parentId;
    return this.#values(entry);
  }

  #entry(id) { return this.aliases.has(id) ? this.aliases.get(id) : id; }

  #kept(entry, parentId) {
    const { type, summary, details, usage, fromHook = false } = entry;
    switch (type) {
      case "message":
        return { type, message: entry.message };
      case "custom_message":
        return { type: "message", message: messageOf(entry) };
      case "custom":
        return { type, customType: entry.customType, data: entry.data };
      case "branch_summary":
        return { type, fromId: entry.fromId === "root" ? null : this.#entry(entry.fromId), summary, details, usage, fromHook };
      case "compaction":
        return { type, summary, retainedTail: this.#tail(entry), tokensBefore: entry.tokensBefore, details, usage, fromHook };
    }
  }

  #values(entry) {
    switch (entry.type) {
      case "leaf":
        return [setValue(main, this.leaf)];
      case "session_info":
        return entry.name ? [setValue(sessionName, entry.name)] : [];
      case "label": {
        const address = entryLabel(this.#entry(entry.targetId));
        return [entry.label ? setValue(address, entry.label) : deleteValue(address)];
      }
    }
    return []; // model, thinking level, tools: the configuration of a lane
  }

  // tail are the messages from the first entry that a compaction keeps up to it.
  #tail(compaction) {
    if (compaction.retainedTail !== undefined) return compaction.retainedTail;
    const tail = [];
    for (let id = compaction.parentId; id !== null; ) {
      const seen = this.#seen.get(id);
      if (seen === undefined) break;
      if (seen.message !== undefined) tail.push(seen.message);
      if (id === compaction.firstKeptEntryId) return tail.reverse();
      id = seen.parentId;
    }
    throw new Error(`compaction ${compaction.id} keeps ${compaction.firstKeptEntryId}, which is not above it`);
  }
}

// messageOf is the message that an entry gives to a context.
function messageOf(entry) {
  switch (entry.type) {
    case "message":
      return entry.message;
    case "custom_message": {
      const { customType, content, details, display } = entry;
      return { role: "custom", customType, content, details, display, timestamp: Date.parse(entry.timestamp) };
    }
    case "branch_summary":
      return entry.summary ? createBranchSummaryMessage(entry.summary, entry.fromId, entry.timestamp) : undefined;
    case "compaction":
      return createCompactionSummaryMessage(entry.summary, entry.tokensBefore, entry.timestamp);
  }
}
