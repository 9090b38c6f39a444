// The six tools that coding agents have. Written by tools/sdk from sdk/python. Do not edit.
export const TOOLS = [
  {
    "name": "bash",
    "description": "Run a command in the sandbox. Each call is a shell of its own that starts in the working folder; processes that it leaves in the background go on. The result has both streams, and the exit status when it is not 0.",
    "schema": {
      "type": "object",
      "properties": {
        "command": {
          "type": "string",
          "description": "what to run"
        },
        "timeout": {
          "type": "integer",
          "minimum": 1,
          "description": "milliseconds, at most 600000; 120000 unless given"
        },
        "description": {
          "type": "string",
          "description": "what it is for, in a few words"
        },
        "run_in_background": {
          "type": "boolean",
          "description": "return at once; the result names the process"
        }
      },
      "required": [
        "command"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "read",
    "description": "Read a text file. Lines are numbered.",
    "schema": {
      "type": "object",
      "properties": {
        "file_path": {
          "type": "string",
          "description": "from the working folder, or absolute"
        },
        "offset": {
          "type": "integer",
          "minimum": 1,
          "description": "the first line, from 1"
        },
        "limit": {
          "type": "integer",
          "minimum": 1,
          "description": "how many lines; 2000 unless given"
        }
      },
      "required": [
        "file_path"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "write",
    "description": "Write a file, whole; folders that miss are made.",
    "schema": {
      "type": "object",
      "properties": {
        "file_path": {
          "type": "string",
          "description": "from the working folder, or absolute"
        },
        "content": {
          "type": "string",
          "description": "all of it"
        }
      },
      "required": [
        "file_path",
        "content"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "edit",
    "description": "Replace a text in a file. It has to stand there exactly, and once unless replace_all is set.",
    "schema": {
      "type": "object",
      "properties": {
        "file_path": {
          "type": "string",
          "description": "from the working folder, or absolute"
        },
        "old_string": {
          "type": "string",
          "description": "what stands there"
        },
        "new_string": {
          "type": "string",
          "description": "what shall stand there"
        },
        "replace_all": {
          "type": "boolean",
          "description": "every place"
        }
      },
      "required": [
        "file_path",
        "old_string",
        "new_string"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "glob",
    "description": "Find files by name, newest first. ** is any depth.",
    "schema": {
      "type": "object",
      "properties": {
        "pattern": {
          "type": "string",
          "description": "such as **/*.py"
        },
        "path": {
          "type": "string",
          "description": "where to begin; the working folder unless given"
        }
      },
      "required": [
        "pattern"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "grep",
    "description": "Search in files by a regular expression (PCRE2).",
    "schema": {
      "type": "object",
      "properties": {
        "pattern": {
          "type": "string",
          "description": "what to find"
        },
        "path": {
          "type": "string",
          "description": "a folder or file; the working folder unless given"
        },
        "glob": {
          "type": "string",
          "description": "only files of this name: *.py"
        },
        "output_mode": {
          "type": "string",
          "enum": [
            "content",
            "files_with_matches",
            "count"
          ],
          "description": "lines, names of files, or how many in each; lines unless given"
        },
        "ignore_case": {
          "type": "boolean",
          "description": "A is a"
        },
        "context": {
          "type": "integer",
          "minimum": 0,
          "description": "lines before and after"
        },
        "multiline": {
          "type": "boolean",
          "description": "a match may go over line ends"
        },
        "head_limit": {
          "type": "integer",
          "minimum": 1,
          "description": "matches; 200 unless given"
        }
      },
      "required": [
        "pattern"
      ],
      "additionalProperties": false
    }
  }
];
