// The peer dialect: flags by which blocks of one launch wait for each other.
irdl.dialect @peer {
  // peer.signal(%flags, %index, %count): stores the count with release ordering at device scope.
  irdl.operation @signal {
    %flags = irdl.base "!builtin.memref"
    %index = irdl.is index
    %count = irdl.is i32
    irdl.operands(flags: %flags, index: %index, count: %count)
  }

  // peer.wait(%flags, %index, %count): returns once the flag is at least the count, by the sign of
  // their difference in 32 bits; everything before the signal that it saw is visible after it
  // (acquire ordering at device scope).
  irdl.operation @wait {
    %flags = irdl.base "!builtin.memref"
    %index = irdl.is index
    %count = irdl.is i32
    irdl.operands(flags: %flags, index: %index, count: %count)
  }

  // %before = peer.arrive(%flags, %index, %count): adds the count with release ordering at device
  // scope; everything before it is visible after a wait that saw it. Gives the flag's value before.
  irdl.operation @arrive {
    %flags = irdl.base "!builtin.memref"
    %index = irdl.is index
    %count = irdl.is i32
    irdl.operands(flags: %flags, index: %index, count: %count)
    irdl.results(before: %count)
  }
}
