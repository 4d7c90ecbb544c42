package parquetexport

// Entry is a row of the table entries: an entry of a log, as it came.
type Entry struct {
	Seq       int64  `parquet:"seq,delta"`             // its place in the log of the database
	Session   string `parquet:"session,dict"`          // id
	N         int64  `parquet:"n"`                     // its place in the session's log, from 1
	Entry     string `parquet:"entry"`                 // id
	Parent    string `parquet:"parent,optional"`       // id of the entry above it; null at a root
	Type      string `parquet:"type,dict"`             // message, compaction, …
	At        int64  `parquet:"at,optional,timestamp"` // its time; null where it cannot be read
	Timestamp string `parquet:"timestamp,optional"`    // its time as it has it
	Payload   string `parquet:"payload"`               // the entry as JSON; bytes that are no UTF-8 are U+FFFD
}

// Message is a row of the table messages: a message, or an entry that a host put in
// for one (role custom).
type Message struct {
	Session    string `parquet:"session,dict"`
	N          int64  `parquet:"n"`
	Entry      string `parquet:"entry"`
	Parent     string `parquet:"parent,optional"`
	At         int64  `parquet:"at,optional,timestamp"`
	Role       string `parquet:"role,optional,dict"`        // user, assistant, toolResult, …
	Text       string `parquet:"text,optional"`             // its text blocks, a line end between two
	Provider   string `parquet:"provider,optional,dict"`    // of an assistant's
	Model      string `parquet:"model,optional,dict"`       // of an assistant's
	StopReason string `parquet:"stop_reason,optional,dict"` // of an assistant's
	Tool       string `parquet:"tool,optional,dict"`        // of a tool's result
	Call       string `parquet:"call,optional"`             // of a tool's result: id of the call
	Bytes      int64  `parquet:"bytes"`                     // of the entry's payload
}

// Usage is a row of the table usage: a billed response, each once. The columns are
// those of the view v_usage.
type Usage struct {
	At         int64  `parquet:"at,optional,timestamp"`
	Session    string `parquet:"session,dict"`
	N          int64  `parquet:"n"`
	Entry      string `parquet:"entry"`
	CWD        string `parquet:"cwd,optional,dict"`
	Kind       string `parquet:"kind,dict"`  // assistant, compaction, branch_summary, usage or tool_result
	Class      string `parquet:"class,dict"` // live, abandoned, compaction or branch_summary
	Provider   string `parquet:"provider,optional,dict"`
	Model      string `parquet:"model,optional,dict"`
	Input      int64  `parquet:"input"` // tokens
	Output     int64  `parquet:"output"`
	CacheRead  int64  `parquet:"cache_read"`
	CacheWrite int64  `parquet:"cache_write"`
	Tokens     int64  `parquet:"tokens"`             // all four
	Cost       int64  `parquet:"cost,decimal(9:18)"` // DECIMAL(18, 9): exact to a billionth
}

// ToolCall is a row of the table tool_calls: a call of a tool, each once. The columns
// are those of the view v_tool_calls.
type ToolCall struct {
	At          int64  `parquet:"at,optional,timestamp"` // of the message that calls
	Session     string `parquet:"session,dict"`
	N           int64  `parquet:"n"`
	Entry       string `parquet:"entry"`
	Call        string `parquet:"call,optional"`
	Tool        string `parquet:"tool,optional,dict"`
	Retry       bool   `parquet:"retry"`
	Failed      bool   `parquet:"failed"`
	HasResult   bool   `parquet:"has_result"`
	Millis      *int64 `parquet:"millis,optional"` // from the message to the result
	InputBytes  int64  `parquet:"input_bytes"`
	ResultBytes int64  `parquet:"result_bytes"`
}
